vcl 4.1;
# Varnish as its users purge it: each answer names its keys, and a purge names one of them.
import xkey;
backend default {
    .host = "127.0.0.1";
    .port = "ORIGIN";
}
sub vcl_recv {
    if (req.method == "PURGE") {
        set req.http.purged = xkey.purge(req.http.xkey-purge);
        return (synth(200, req.http.purged));
    }
}
sub vcl_deliver {
    if (obj.hits > 0) {
        set resp.http.cache-status = "varnish; hit";
    }
}
