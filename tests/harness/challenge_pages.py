"""Pages that ask who you are, written after the structure of real ones, and pages that do not."""
# ruff: noqa: E501, ISC004

from __future__ import annotations

from collections.abc import Iterator

ANUBIS = """\
<!doctype html><html lang="en"><head><title>Making sure you&#39;re not a bot!</title>
<meta name="robots" content="noindex,nofollow">
<script id="anubis_challenge" type="application/json">{"rules":{"algorithm":"fast","difficulty":4},
"challenge":"5f0c1d"}</script></head><body id="top"><main><h1>Making sure you&#39;re not a bot!</h1>
<img src="/.within.website/x/cmd/anubis/static/img/pensive.webp?cacheBuster=1.21.3">
<noscript><p>Sadly, you must enable JavaScript to get past this challenge.</p></noscript>
<footer><p>Protected by <a href="https://github.com/TecharoHQ/anubis">Anubis</a></p></footer></main>
</body></html>
"""
CLOUDFLARE = (
    '<!DOCTYPE html><title>Just a moment...</title><meta http-equiv="refresh" content="360">'
    "<noscript>Enable JavaScript</noscript><script>(function(){window._cf_chl_opt = {cType: 'managed'};"
    "a.src = '/cdn-cgi/challenge-platform/h/g/orchestrate/chl_page/v1?ray=8f0a'}());</script>"
)
CHALLENGES = {
    "Anubis": ANUBIS,
    "Cloudflare": CLOUDFLARE,
    "Sucuri": "<html><title>You are being redirected...</title><noscript>Javascript is required."
    "</noscript><script>sucuri_cloudproxy_js='',S='cT0iNyIu'</script></html>",
    "Akamai": '<html><body><div id="sec-if-cpt-container"></div><p>Wait.</p></body></html>',
    "AWS WAF": "<html><head><script type=x>window.gokuProps = {'key':'A'};</script><body><p>x</p>",
    "DataDome": '<html><body><p>x</p><iframe src="https://geo.captcha-delivery.com/captcha/?a=b">',
    "DDoS-Guard": '<!doctype html><h1>Check</h1><script src="/.well-known/ddos-guard/check?a">'
    "</script>",
    "go-away": '<html><link href="/.well-known/.git.gammaspectra.live/git/go-away/x.css"><p>x</p>',
    "HUMAN": '<html><body><h1>Access denied</h1><div class=a id="px-captcha"></div></body></html>',
    "Imperva": '<html><body><iframe id="main-iframe" src="/_Incapsula_Resource?SWUDNSAI=31">Request'
    " unsuccessful.</iframe></body></html>",
    "SiteGround": '<html><head><meta http-equiv="refresh" content="0;/.well-known/sgcaptcha/?r=%2F">'
    "</head><p>x</p></html>",
    "Vercel": "<!doctype html><html><head><title>Vercel Security Checkpoint</title><p>x</p>",
    "only a refresh": '<html><head><META content="0; url=/" HTTP-EQUIV="Refresh"></head></html>',
    "only a script": "<!-- x --><html><head><title>x</title><script>document.cookie='a=<b>';"
    "location.reload()</script></head><body></body></html>",
}
"""By what each is called."""

_HEADS = (
    "<!DOCTYPE html><html lang=en><head><meta charset=utf-8><title>{title}</title></head>",
    '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title>{title}</title>'
    '<meta name="robots" content="noindex"/></head>',
    '<html><head><meta http-equiv="refresh" content="300"><title>{title}</title></head>',
)
_SCRIPTS = (
    "",
    # Of products, in pages that ask nobody anything.
    "<script>(function(){{var d=b.createElement('script');d.innerHTML=\"window.__CF$cv$params={{r:'8'"
    "}};var a=document.createElement('script');a.src='/cdn-cgi/challenge-platform/scripts/jsd/main.js'"
    ';";}})();</script>',
    '<script src="/_Incapsula_Resource?SWJIYLWA=719d34d31c8e3a6e"></script>'
    '<script src="https://js.datadome.co/tags.js"></script><script>window._pxAppId="PX1"</script>',
    '<script src="https://a.edge.sdk.awswaf.com/a/challenge.js" defer></script><noscript>'
    "Enable JavaScript to continue.</noscript>",
)
_BODIES = {
    "Page not found": "<h1>404</h1><p>The page robots.txt was not found.</p>",
    "Home": '<nav><a href="/">Home</a></nav><main><h2>Welcome</h2><p>News</p></main>',
    "App": '<noscript>You need to enable JavaScript to run this app.</noscript><div id="root"></div>'
    '<script type=module src="/app.js"></script>',
    "Anubis, and how it works": "<article><p>It sends <code>&lt;script id=\"anubis_challenge\"&gt;"
    '</code> with <a href="https://anubis.techaro.lol">a challenge</a>. Just a moment...</p></article>',
    "Moved": '<p>This page has moved <a href="/new">here</a>.</p>'
    '<script>location="/new"</script>',
}  # fmt: skip


def ordinary_pages() -> Iterator[str]:
    """60 of them."""
    for title, body in _BODIES.items():
        for head in _HEADS:
            for script in _SCRIPTS:
                yield f"{head.format(title=title)}<body>{body}{script.format()}</body></html>"
