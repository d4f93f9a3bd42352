"""What each page shows beside its own words."""

from wagtail.models import Site

from home.models import Notice


def around(request):
    """The menu, as Wagtail's guide for sites makes it, and the notices."""
    site = Site.find_for_request(request)
    return {
        "menu": site.root_page.get_descendants().live().in_menu().order_by("path") if site else [],
        "notices": Notice.objects.order_by("id"),
    }
