"""Settings beside those that `wagtail start` has written."""

import os

from .base import *  # noqa: F403

DEBUG = False
SECRET_KEY = "only-for-a-test"
ALLOWED_HOSTS = ["*"]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": "127.0.0.1",
        "PORT": os.environ["DATABASE"],
        "NAME": "wagtail",
        "USER": "wagtail",
    }
}
# The recipe asks for this: nothing is cached outside the database.
CACHES = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}
TEMPLATES[0]["OPTIONS"]["context_processors"].append("home.context.around")  # noqa: F405
