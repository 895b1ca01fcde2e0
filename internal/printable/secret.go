package printable

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// hidden replaces secrets. url.URL.Redacted uses the same text.
const hidden = "xxxxx"

// shown lists the parameters of this module. Their values are shown; values of other parameters may
// be secret.
var shown = []string{
	"authority", "cds", "cluster", "dns", "failbackDelay", "failbackJitter", "failoverTimeout",
	"fallbackOnReachabilityOnly", "fastFailover", "maxFailbackDelay", "minReady", "minReadyRecovery",
	"addressType", "node", "outlierDetection", "pickFirst", "prefer", "refresh", "region", "removeAfter", "slowStart", "subset",
	"subsetSeed", "terminating", "verify", "warmStandby", "zone", "zoneCallers", "zoneMinEndpoints",
}

const shortest = 4

const list = "failover"

// HideTarget hides the passwords and tokens in a target:
//
//	consul://user:secret@host/shop?dc=a&token=x  ->  consul://user:xxxxx@host/shop?dc=xxxxx&token=xxxxx
//
// A target without passwords and tokens is returned unchanged.
func HideTarget(u url.URL) url.URL {
	if !may(u.String()) {
		return u
	}
	return (&hider{}).target(u)
}

// HideText is like HideTarget, but the text need not be a valid target.
func HideText(text string) string {
	if !may(text) {
		return text
	}
	return (&hider{}).text(text)
}

// HideIn hides the target's passwords and tokens in a text such as an error.
func HideIn(text string, target url.URL) string {
	if !may(target.String()) {
		return text
	}
	h := &hider{}
	after := h.target(target)
	text = strings.ReplaceAll(text, target.String(), after.String())
	slices.SortFunc(h.secrets, func(a, b string) int { return len(b) - len(a) })
	for _, s := range h.secrets {
		for _, form := range []string{s, url.QueryEscape(s), url.PathEscape(s), url.UserPassword("", s).String()[1:]} {
			text = strings.ReplaceAll(text, form, hidden)
		}
	}
	return text
}

// may reports whether text may contain a secret. "%" is included, because the other characters may
// be escaped.
func may(text string) bool { return strings.ContainsAny(text, "@?#%") }

type hider struct {
	changed bool
	secrets []string // values that are certainly secret, for HideIn
}

func (h *hider) hide(value string, sure bool) {
	h.changed = h.changed || value != hidden
	if sure && len(value) >= shortest && value != hidden {
		h.secrets = append(h.secrets, value)
	}
}

func (h *hider) target(u url.URL) url.URL {
	if u.User != nil {
		if password, ok := u.User.Password(); ok {
			h.hide(password, true)
			u.User = url.UserPassword(u.User.Username(), hidden)
		} else {
			name := u.User.Username() // a user name without a password may be a token
			h.hide(name, len(name) >= 8)
			u.User = url.User(hidden)
		}
	}
	u.RawQuery = h.query(u.RawQuery)
	if !harmless(u.Fragment) {
		h.hide(u.Fragment, false)
		u.Fragment, u.RawFragment = hidden, ""
	}
	if u.Scheme == list {
		u.Opaque = h.list(u.Opaque)
		before := u.EscapedPath()
		if after := h.list(before); after != before {
			u.RawPath = after
			u.Path, _ = url.PathUnescape(after) // the error is nil, because each entry was escaped
		}
		return u
	}
	u.Opaque = h.opaque(u)
	if after := h.path(u.Path); after != u.Path {
		u.Path, u.RawPath = after, ""
	}
	return u
}

func (h *hider) list(escaped string) string {
	entries := strings.Split(escaped, ",")
	for i, entry := range entries {
		slash := ""
		if i == 0 && strings.HasPrefix(entry, "/") {
			slash, entry = "/", entry[1:]
		}
		text, err := url.PathUnescape(entry)
		if err != nil {
			text = h.unread(entry)
		} else if after := h.text(text); after == text {
			continue
		} else {
			text = after
		}
		entries[i] = slash + url.PathEscape(text)
	}
	return strings.Join(entries, ",")
}

func (h *hider) text(text string) string {
	prefix := ""
	u, err := url.Parse(text)
	if err != nil { // no scheme: package failover reads such an entry as a DNS name
		prefix = "dns:///"
		u, err = url.Parse(prefix + text)
	}
	if err != nil {
		return h.unread(text)
	}
	inner := &hider{}
	after := inner.target(*u)
	h.secrets = append(h.secrets, inner.secrets...)
	if !inner.changed {
		return text
	}
	h.changed = true
	return strings.TrimPrefix(after.String(), prefix)
}

// unread hides possible secrets in a text that cannot be parsed as a URL.
func (h *hider) unread(text string) string {
	if end := strings.LastIndex(text, "@"); end >= 0 {
		begin := 0
		if i := strings.Index(text[:end], "://"); i >= 0 {
			begin = i + len("://")
		}
		_, password, _ := strings.Cut(text[begin:end], ":")
		h.hide(password, true)
		h.changed = true
		text = text[:begin] + hidden + text[end:]
	}
	if i := strings.IndexAny(text, "?#"); i >= 0 {
		h.changed = true
		text = text[:i+1] + hidden
	}
	return text
}

func (h *hider) opaque(u url.URL) string {
	end := strings.LastIndex(u.Opaque, "@")
	if end < 0 || strings.HasPrefix(u.Scheme, "unix") {
		return u.Opaque
	}
	_, password, _ := strings.Cut(":"+u.Opaque[:end], ":")
	h.hide(password, true)
	return hidden + u.Opaque[end:]
}

// path hides passwords in the path. With one slash too many, the user information of a target is in
// its path.
func (h *hider) path(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		end := strings.LastIndex(s, "@")
		if end < 0 {
			continue
		}
		if user, password, ok := strings.Cut(s[:end], ":"); ok {
			h.hide(password, true)
			segments[i] = user + ":" + hidden + s[end:]
		}
	}
	return strings.Join(segments, "/")
}

func (h *hider) query(raw string) string {
	pairs := strings.Split(raw, "&")
	for i, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			name, value = "", pair
		}
		if plain, err := url.QueryUnescape(name); err == nil && slices.Contains(shown, plain) || harmless(value) {
			continue
		}
		if plain, err := url.QueryUnescape(value); err == nil {
			h.hide(plain, sure(name))
		}
		h.changed = h.changed || value != hidden
		if ok {
			pairs[i] = name + "=" + hidden
		} else {
			pairs[i] = hidden
		}
	}
	return strings.Join(pairs, "&")
}

func harmless(value string) bool {
	_, notBool := strconv.ParseBool(value)
	_, notDuration := time.ParseDuration(value)
	return len(value) < shortest || notBool == nil || notDuration == nil
}

// sure reports whether the name of a parameter suggests that its value is secret. HideIn hides such
// values wherever they occur in a text. Other values are hidden only in the target: hiding the
// value of dc=east everywhere, for example, would hide parts of host names.
func sure(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"pass", "pwd", "token", "secret", "key", "auth", "cred", "sig"}, func(part string) bool { return strings.Contains(name, part) })
}
