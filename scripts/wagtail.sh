#!/usr/bin/env bash
# Random edits of Wagtail on PostgreSQL behind `thorp web`, all on loopback: scripts/wagtail.sh THORP [--edits N ...]
#
# THORP is the thorp command. Wagtail comes from PyPI, into target/wagtail. `wagtail start` makes the site, and scripts/edits/wagtail brings
# its pages. scripts/edits/wagtail.py edits and compares. RECIPE names another recipe than the site's own, `wagtail` for example. WITHOUT
# is a text that is taken out of the site's routes: to see that a comparison notices that. Needs Python 3.10 or later, and the programs of a
# PostgreSQL server. What was started is stopped at the end.
set -euo pipefail
cd "$(dirname "$0")/.."
thorp=$(realpath "$1")
shift
place=$PWD/${BUILT:-target}/wagtail
here=$PWD/scripts/edits
source "$here/behind.sh"

# --- Wagtail ---
packages="wagtail==8.0.1 psycopg[binary]==3.3.9 waitress==3.0.2"
if [ ! -e "$place/installed" ] || [ "$(cat "$place/installed")" != "$packages" ]; then
  rm -rf "$place" && mkdir -p "$place"
  python3 -m venv "$place/python"
  "$place/python/bin/pip" install --quiet --disable-pip-version-check $packages
  echo "$packages" >"$place/installed"
fi
python=$place/python/bin
site=$run/site
mkdir "$site" && "$python/wagtail" start shown "$site" >/dev/null
home=$site/home
mkdir -p "$home/management/commands" && touch "$home/management/__init__.py" "$home/management/commands/__init__.py"
cp "$here/wagtail/models.py" "$here/wagtail/context.py" "$home"
cp "$here/wagtail/edit.py" "$home/management/commands"
cp "$here/wagtail/settings.py" "$site/shown/settings/edits.py"
pages=$home/templates/home
cp "$here/wagtail/around.html" "$pages/around.html"
cp "$here/wagtail/list.html" "$pages/home_page.html"
cp "$here/wagtail/list.html" "$pages/section_page.html"
cp "$here/wagtail/article.html" "$pages/article_page.html"

# --- Its database ---
begin_database wagtail
sql -c 'CREATE ROLE wagtail LOGIN' -c 'ALTER DATABASE wagtail OWNER TO wagtail'
export DATABASE=$database DJANGO_SETTINGS_MODULE=shown.settings.edits PYTHONPATH=$site
manage() { (cd "$site" && "$python/python" manage.py "$@"); }
manage makemigrations home >"$run/migrate.log" 2>&1 && manage migrate >>"$run/migrate.log" 2>&1 || { cat "$run/migrate.log" >&2; exit 1; }

# --- The recipe of the site: that for Wagtail, with the site's tables and routes in it ---
python3 - "$here/wagtail" crates/web/recipes/wagtail.toml >"$run/site.toml" <<'PYTHON'
import os, pathlib, sys
own, shipped = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).read_text()
head, tables = shipped.split("[tables]\n", 1)
tables, routes = tables.split("\n# Without keys", 1)
print(head + "[tables]\n" + (own / "tables.toml").read_text() + tables)
print((own / "routes.toml").read_text().replace(os.environ.get("WITHOUT", ""), "") + "# Without keys" + routes)
PYTHON
recipe=${RECIPE:-$run/site.toml}
postgres=postgresql://postgres@127.0.0.1:$database/wagtail
"$thorp" web setup --postgres "$postgres" --recipe "$recipe" --apply >"$run/setup.log" 2>&1 || { cat "$run/setup.log" >&2; exit 1; }
"$thorp" web check --postgres "$postgres" --recipe "$recipe" >"$run/check.log" 2>&1 || { cat "$run/check.log" >&2; exit 1; }
grep -v '^ok' "$run/check.log" >&2 || true

# --- The application and the proxy ---
begin env --chdir="$site" "$python/waitress-serve" --listen="127.0.0.1:$origin" --threads=4 shown.wsgi:application >"$run/wagtail.log" 2>&1
until curl -s -o /dev/null "http://127.0.0.1:$origin/"; do sleep 0.1; done
begin_proxy "$thorp" wagtail "$recipe"
ORIGIN="http://127.0.0.1:$origin" MANAGE="$python/python $site/manage.py" \
  python3 "$here/wagtail.py" "$@" --proxy "http://127.0.0.1:$proxy"
