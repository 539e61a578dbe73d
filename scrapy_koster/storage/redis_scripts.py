"""The scripts that RedisStorage runs in the server, each in one step."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha1
from typing import NamedTuple

from scrapy_koster.storage.turns import GIVES_WAY_TIMES


class Script(NamedTuple):
    """A script in Lua, and the name that a server has for it once it has run it."""

    text: str
    sha: bytes


def _script(text: str) -> Script:
    return Script(text, sha1(text.encode(), usedforsecurity=False).hexdigest().encode())


# In all of them: KEYS[1] what is known, KEYS[2] the claim; ARGV[1] the owner. A key may
# hold what somebody else put there, of any type: pcall returns a table then, which is no text.
RELEASE = _script("if redis.pcall('GET', KEYS[2]) == ARGV[1] then redis.call('DEL', KEYS[2]) end")
# ARGV: owner, milliseconds, the last octet that is read, 1 for unless_known. A claim without an
# end, or with one that is too late (see port.held_secs), is void.
CLAIM = _script("""
local known = redis.pcall('GETRANGE', KEYS[1], 0, ARGV[3])
if type(known) ~= 'string' then known = '' end
if ARGV[4] == '1' and known ~= '' then return {0, known} end
local owner = redis.pcall('GET', KEYS[2])
local left = 0
if type(owner) == 'string' and owner ~= ARGV[1] then left = redis.call('PTTL', KEYS[2]) end
if left <= 0 or left > 2 * ARGV[2] then
    left = 0
    redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
end
return {left, known}
""")
# KEYS[1]: the last visit to a host: for how long it is kept, which with what is left says when it
# was, and the delay that gives way to (see turns.turn). ARGV: the delay, 1 for begun, for how long
# to keep it, the grace: in milliseconds. One without an end, or of another kind, is void.
VISIT = _script(f"""
local secs, keep, life, grace = tonumber(ARGV[1]), ARGV[2] == '1', ARGV[3], tonumber(ARGV[4])
local value = redis.pcall('GET', KEYS[1])
local age, wanted, ends
if type(value) == 'string' and #value < 50 then
    local kept, want = string.match(value, '^(%d+) (%d+)$')
    ends = redis.call('PTTL', KEYS[1])
    if kept and ends > 0 and ends <= tonumber(kept) then
        age, wanted, life = kept - ends, tonumber(want), keep and life or kept
    end
end
local left = 0
if age and not keep then
    local needed = secs
    if wanted > secs then
        needed = math.max(secs, math.min(wanted + math.min(grace, secs), {GIVES_WAY_TIMES} * secs))
    end
    left = math.max(needed - age, 0)
end
if left > 0 then
    if secs > wanted then
        redis.call('SET', KEYS[1], string.format('%s %.0f', life, secs), 'PX', ends)
    end
else
    if not (age and keep and wanted > secs) then wanted = 0 end
    life = ARGV[3]
    redis.call('SET', KEYS[1], string.format('%s %.0f', life, wanted), 'PX', life)
end
return math.ceil(left)
""")
# ARGV: owner, time learnt, value, milliseconds to live, seconds (see latest.supersedes).
PUT = _script(f"""
local old = redis.pcall('GETRANGE', KEYS[1], 0, 63)
local late = type(old) == 'string' and tonumber(string.match(old, '^(%S+) '))
if late then late = late - ARGV[2] end
if not (late and late > 0 and late <= tonumber(ARGV[5])) then
    redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])
end
{RELEASE.text}
""")

TEXTS: Mapping[bytes, str] = {script.sha: script.text for script in (RELEASE, CLAIM, VISIT, PUT)}
"""The scripts by their names in the server."""
