"""`manage.py edit`: makes random edits through Wagtail's own code, one for each line `NUMBER KIND` of standard input."""

import io
import json
import random
import sys

from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from django.core.files.images import ImageFile
from django.core.management.base import BaseCommand
from home.models import ArticlePage, HomePage, Notice, SectionPage
from PIL import Image as Picture
from wagtail.contrib.redirects.models import Redirect
from wagtail.documents.models import Document
from wagtail.images.models import Image
from wagtail.models import Page, PageViewRestriction, Site

SLUGS = {1: [f"s{number}" for number in range(5)], 2: [f"a{number}" for number in range(4)], 3: ["b0", "b1"]}
PRIVATE = [PageViewRestriction.LOGIN, PageViewRestriction.PASSWORD]
# Copies do not make the site larger than this, in pages.
PAGES_MAX = 120


class Refused(Exception):
    pass


class Command(BaseCommand):
    def add_arguments(self, parser):
        parser.add_argument("--seed", type=int, default=1)

    def handle(self, *_, seed, **__):
        first_pages()
        self.stdout.write(json.dumps({"ready": True}) + "\n")
        self.stdout.flush()
        for line in sys.stdin:
            number, kind = line.split()
            edit = Edit(int(number), random.Random(f"{seed}:{number}"))
            try:
                told = {"what": str(getattr(edit, kind)())}
            except Refused as refused:
                told = {"refused": str(refused)}
            self.stdout.write(json.dumps(told) + "\n")
            self.stdout.flush()


class Edit:
    def __init__(self, number, choices):
        self.number, self.choices = number, choices
        self.user = User.objects.get(username="editor")

    def _one(self, found, why="there is none"):
        found = list(found)
        if not found:
            raise Refused(why)
        return self.choices.choice(found)

    def _page(self, **filters):
        pages = Page.objects.filter(depth__gt=2).filter(**filters).order_by("path")
        return self._one(pages).specific

    def _parent(self):
        return self._one(Page.objects.filter(depth__gt=1, depth__lt=5).order_by("path")).specific

    def _free(self, slug, parent, page=None):
        if not Page._slug_is_available(slug, parent, page):
            raise Refused("the slug is taken")
        return slug

    def publish(self):
        """Edits a page and publishes it, as an editor does."""
        page = self._page()
        if page.alias_of_id:
            raise Refused("it is an alias")
        page.title = f"title {self.number}"
        if isinstance(page, ArticlePage):
            page.body, page.picture = self._body(), self._one([None, *Image.objects.order_by("id")])
        page.save_revision(user=self.user).publish(user=self.user)
        return page.url_path

    def _body(self):
        pieces = [f"<p>text {self.number}</p>"]
        kind = self.choices.randrange(4)
        if kind == 0:
            pieces.append(f'<p><a linktype="page" id="{self._page().id}">a page</a></p>')
        elif kind == 1:
            image = self._one(Image.objects.order_by("id"))
            pieces.append(f'<embed embedtype="image" id="{image.id}" format="left" alt="{image.title}"/>')
        elif kind == 2:
            document = self._one(Document.objects.order_by("id"))
            pieces.append(f'<p><a linktype="document" id="{document.id}">a document</a></p>')
        return "".join(pieces)

    def draft(self):
        page = self._page(alias_of=None)
        page.title = f"draft {self.number}"
        page.save_revision(user=self.user)
        return page.url_path

    def unpublish(self):
        page = self._page(live=True)
        page.unpublish(user=self.user)
        return page.url_path

    def publish_again(self):
        page = self._page(live=False, alias_of=None)
        page.save_revision(user=self.user).publish(user=self.user)
        return page.url_path

    def create(self):
        parent = self._parent()
        slug = self._free(self.choices.choice(SLUGS.get(parent.depth - 1, ["b0"])), parent)
        kind = SectionPage if parent.depth == 2 else ArticlePage
        page = parent.add_child(instance=kind(title=f"new {self.number}", slug=slug, live=self.choices.random() < 0.8))
        return page.url_path

    def delete(self):
        page = self._page(depth__gt=3)
        page.delete(user=self.user)
        return page.url_path

    def move(self):
        """Moves a page with all below it."""
        page, parent = self._page(), self._parent()
        if parent == page or parent.is_descendant_of(page):
            raise Refused("a page cannot be below itself")
        self._free(page.slug, parent, page)
        page.move(parent, pos="last-child", user=self.user)
        return f"{page.url_path} below {parent.url_path}"

    def order(self):
        page = self._page()
        sibling = self._one(page.get_siblings(inclusive=False), "it has no sibling").specific
        page.move(sibling, pos=self.choices.choice(["left", "right"]), user=self.user)
        return f"{page.url_path} beside {sibling.url_path}"

    def rename(self):
        page = self._page(alias_of=None)
        slugs = SLUGS.get(page.depth - 2, ["b0"])
        page.slug = self._free(self.choices.choice(slugs), page.get_parent(), page)
        page.save_revision(user=self.user).publish(user=self.user)
        return page.url_path

    def alias(self):
        page, parent = self._page(alias_of=None), self._parent()
        if Page.objects.count() > PAGES_MAX:
            raise Refused("the site is large enough")
        slug = self._free(self.choices.choice(SLUGS.get(parent.depth - 1, ["b1"])), parent)
        return page.create_alias(parent=parent, update_slug=slug, user=self.user).url_path

    def copy(self):
        page, parent = self._page(), self._parent()
        if parent == page or parent.is_descendant_of(page) or Page.objects.count() > PAGES_MAX:
            raise Refused("no copy into itself, and none on a large site")
        slug = self._free(self.choices.choice(SLUGS.get(parent.depth - 1, ["b1"])), parent)
        return page.copy(recursive=True, to=parent, update_attrs={"slug": slug}, user=self.user).url_path

    def menu(self):
        page = self._page(depth__lt=5, alias_of=None)
        page.show_in_menus = not page.show_in_menus
        page.save_revision(user=self.user).publish(user=self.user)
        return f"{page.url_path} {page.show_in_menus}"

    def private(self):
        page = self._page()
        restrictions = PageViewRestriction.objects.filter(page=page)
        if restrictions.exists():
            restrictions.get().delete()
            return f"{page.url_path} is for all"
        kind = self.choices.choice(PRIVATE)
        PageViewRestriction.objects.create(page=page, restriction_type=kind, password="only-for-a-test")
        return f"{page.url_path} is private: {kind}"

    def open_all(self):
        """So that private pages do not become most of them."""
        PageViewRestriction.objects.all().delete()
        return ""

    def image(self):
        """Another file, as the view of Wagtail's administration does it."""
        image = self._one(Image.objects.order_by("id"))
        image.file = picture(self.number)
        image._set_file_hash()
        image.save()
        image.renditions.all().delete()
        return image.id

    def image_title(self):
        image = self._one(Image.objects.order_by("id"))
        image.title = f"image {self.number}"
        image.save()
        return image.id

    def image_gone(self):
        image = self._one(Image.objects.order_by("id"))
        image.delete()
        return Image.objects.create(title=f"image {self.number}", file=picture(self.number)).id

    def document(self):
        document = self._one(Document.objects.order_by("id"))
        document.file = ContentFile(b"text", name=f"text-{self.number}.txt")
        document.save()
        return document.id

    def notice(self):
        """A snippet."""
        notice = self._one(Notice.objects.order_by("id"))
        notice.text = f"notice {self.number}"
        notice.save()
        return notice.id

    def site_name(self):
        site = Site.objects.get(is_default_site=True)
        site.site_name = f"site {self.number}"
        site.save()
        return site.site_name

    def redirect(self):
        path = f"/s{self.number % 5}/a{self.choices.randrange(4)}/"
        found = Redirect.objects.filter(old_path=Redirect.normalise_path(path))
        if found.exists():
            found.delete()
            return f"no more from {path}"
        page = self._page()
        Redirect.add_redirect(path, redirect_to=page, is_permanent=self.choices.random() < 0.5)
        return f"{path} to {page.url_path}"

    def log_in(self):
        """An editor logs in."""
        from django.contrib.auth.models import update_last_login

        update_last_login(None, self.user)
        return self.user.username


def picture(number):
    """A picture of one colour."""
    content = io.BytesIO()
    Picture.new("RGB", (60 + number % 40, 50), (number % 256, 90, 90)).save(content, "PNG")
    return ImageFile(io.BytesIO(content.getvalue()), name=f"picture-{number}.png")


def first_pages():
    User.objects.create_superuser("editor", password="only-for-a-test")
    Notice.objects.create(text="notice 0")
    for number in range(3):
        Image.objects.create(title=f"image {number}", file=picture(number))
        Document.objects.create(title=f"document {number}", file=ContentFile(b"text", name=f"text-{number}.txt"))
    home = HomePage.objects.get()
    for section in SLUGS[1][:4]:
        above = home.add_child(instance=SectionPage(title=section, slug=section, show_in_menus=section < "s2"))
        for slug in SLUGS[2]:
            article = above.add_child(instance=ArticlePage(title=slug, slug=slug, body=f"<p>{slug}</p>"))
            for below in SLUGS[3]:
                article.add_child(instance=ArticlePage(title=below, slug=below, body=f"<p>{below}</p>"))
