#!/usr/bin/env bash
# MediaWiki on PostgreSQL behind `thorp web`, all on loopback: scripts/wiki.sh THORP COMMAND [ARGUMENT ...]
#
# THORP is the thorp command. COMMAND edits and reads: bench/src/bin/wiki.rs, or scripts/edits/mediawiki.py. It gets --proxy URL behind its
# arguments. Its environment has ORIGIN (the wiki without the proxy), DATABASE (the port of PostgreSQL), and RUN_JOBS (a program that runs
# the jobs of the wiki). RECIPE names another recipe than `mediawiki`. The wiki is Debian 12's package, unpacked into target/wiki and not
# installed. Its code is as it was; its settings say where its articles are. Needs apt-get, and the programs of a PostgreSQL server. What
# was started is stopped at the end.
set -euo pipefail
cd "$(dirname "$0")/.."
thorp=$(realpath "$1")
shift
place=$PWD/${BUILT:-target}/wiki
source scripts/edits/behind.sh
packages="php-common php8.2-common php8.2-cli php8.2-opcache php8.2-readline php8.2-intl php8.2-pgsql php8.2-mbstring php8.2-xml
  mediawiki-classes mediawiki"

# --- The wiki's files ---
if [ ! -e "$place/unpacked" ]; then
  rm -rf "$place" && mkdir -p "$place/debs" "$place/root"
  (cd "$place/debs" && apt-get download -qq $packages) ||
    { echo "Debian's packages of MediaWiki 1.39 and PHP 8.2 cannot be had here: this needs Debian 12" >&2; exit 1; }
  for package in "$place"/debs/*.deb; do dpkg -x "$package" "$place/root"; done
  touch "$place/unpacked"
fi
wiki=$run/wiki
cp -r "$place/root/usr/share/mediawiki" "$wiki"
# These are links to places of an installed wiki.
(cd "$wiki" && rm -f LocalSettings.php config extensions images && mkdir -p extensions images cache)
modules=$(echo "$place"/root/usr/lib/php/2*/)
php=("$place/root/usr/bin/php8.2" -n -d extension_dir="$modules" -d zend_extension=opcache -d memory_limit=512M)
for module in dom xml xmlreader simplexml xmlwriter mbstring intl pgsql fileinfo ctype iconv tokenizer posix calendar; do
  php+=(-d "extension=$module")
done

begin_database wiki

# --- The application ---
"${php[@]}" "$wiki/maintenance/install.php" --dbtype postgres --dbserver 127.0.0.1 --dbport "$database" --dbname wiki \
  --dbuser wiki --dbpass none --installdbuser postgres --installdbpass none \
  --server "http://127.0.0.1:$proxy" --scriptpath "" --pass Only-for-a-test-1 --skins Vector Wiki Admin >"$run/install.log" 2>&1 ||
  { cat "$run/install.log" >&2; exit 1; }
cat >>"$wiki/LocalSettings.php" <<'SETTINGS'
$wgArticlePath = "/wiki/$1";
$wgUsePathInfo = true;
$wgJobRunRate = 0;
$wgMainCacheType = CACHE_NONE;
$wgMessageCacheType = CACHE_NONE;
$wgParserCacheType = CACHE_DB;
$wgSessionCacheType = CACHE_DB;
$wgDisableAnonTalk = true;
$wgRateLimits = [];
$wgEnableUploads = true;
$wgGroupPermissions['sysop']['deletelogentry'] = true;
SETTINGS
cat >"$run/router.php" <<'ROUTER'
<?php
// What a web server does for MediaWiki: /wiki/Title is index.php with a path behind it.
$path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
if (!preg_match('#^/wiki/(.+)$#', $path, $found)) {
    return false;
}
$_SERVER['SCRIPT_NAME'] = '/index.php';
$_SERVER['SCRIPT_FILENAME'] = __DIR__ . '/wiki/index.php';
$_SERVER['PATH_INFO'] = '/' . urldecode($found[1]);
chdir(__DIR__ . '/wiki');
require __DIR__ . '/wiki/index.php';
ROUTER
export PHP_CLI_SERVER_WORKERS=4
begin "${php[@]}" -S "127.0.0.1:$origin" -t "$wiki" "$run/router.php" >"$run/php.log" 2>&1
sql -d wiki -c "SELECT format('ALTER TABLE %I.%I REPLICA IDENTITY FULL;', schemaname, relname) FROM pg_stat_user_tables" | sql -d wiki
sql -d wiki -c 'CREATE PUBLICATION thorp FOR ALL TABLES'

begin_proxy "$thorp" wiki "${RECIPE:-mediawiki}"

# --- Edits ---
printf '#!/bin/sh\nexec %s\n' "$(printf '%q ' "${php[@]}" "$wiki/maintenance/runJobs.php")" >"$run/jobs.sh"
chmod 755 "$run/jobs.sh"
ORIGIN="http://127.0.0.1:$origin" DATABASE=$database RUN_JOBS=$run/jobs.sh "$@" --proxy "http://127.0.0.1:$proxy"
