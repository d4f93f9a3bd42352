"""Pages and a snippet for a site that `wagtail start` has made: sections list their children, articles have text and pictures."""

from django.db import models
from wagtail.fields import RichTextField
from wagtail.models import Page
from wagtail.snippets.models import register_snippet


class HomePage(Page):
    pass


class SectionPage(Page):
    pass


class ArticlePage(Page):
    body = RichTextField(blank=True)
    picture = models.ForeignKey("wagtailimages.Image", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")


@register_snippet
class Notice(models.Model):
    """What stands at the foot of each page."""

    text = models.TextField()
