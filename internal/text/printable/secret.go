package printable

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const placeholder = "xxxxx" // same as in url.URL.Redacted

var visibleParameters = []string{ // used by our own targets; anything else may be secret
	"authority", "cds", "cluster", "dns", "failoverTimeout",
	"endpointPolicy", "fallbackOnReachabilityOnly", "addressType", "node", "outlierDetection", "overflow", "perPriority", "prefer", "ramp", "refresh", "region", "removeAfter", "slowStart", "subset",
	"subsetSeed", "terminating", "verify", "warmStandby", "zone",
}

const minSecretLength = 4

const listScheme = "failover"

// HideTarget hides the passwords and tokens in a target:
//
//	consul://user:secret@host/shop?dc=a&token=x  ->  consul://user:xxxxx@host/shop?dc=xxxxx&token=xxxxx
//
// If there aren't any, it returns the target unchanged.
func HideTarget(u url.URL) url.URL {
	if !mayContainSecret(u.String()) {
		return u
	}
	return (&hider{}).hideTarget(u)
}

// HideText is like HideTarget, but text doesn't have to be a valid target.
func HideText(text string) string {
	if !mayContainSecret(text) {
		return text
	}
	return (&hider{}).hideText(text)
}

// HideIn hides the target's passwords and tokens in some other text, e.g. an error.
func HideIn(text string, target url.URL) string {
	if !mayContainSecret(target.String()) {
		return text
	}
	h := &hider{}
	after := h.hideTarget(target)
	text = strings.ReplaceAll(text, target.String(), after.String())
	slices.SortFunc(h.secrets, func(a, b string) int { return len(b) - len(a) })
	for _, s := range h.secrets {
		for _, form := range []string{s, url.QueryEscape(s), url.PathEscape(s), url.UserPassword("", s).String()[1:]} {
			text = strings.ReplaceAll(text, form, placeholder)
		}
	}
	return text
}

// Secrets may be escaped, so we have to look for "%" too.
func mayContainSecret(text string) bool { return strings.ContainsAny(text, "@?#%") }

type hider struct {
	changed bool
	secrets []string // HideIn looks for these everywhere
}

func (h *hider) hide(value string, isSecret bool) {
	h.changed = h.changed || value != placeholder
	if isSecret && len(value) >= minSecretLength && value != placeholder {
		h.secrets = append(h.secrets, value)
	}
}

func (h *hider) hideTarget(u url.URL) url.URL {
	if u.User != nil {
		if password, ok := u.User.Password(); ok {
			h.hide(password, true)
			u.User = url.UserPassword(u.User.Username(), placeholder)
		} else {
			name := u.User.Username() // could be a token if there's no password
			h.hide(name, len(name) >= 8)
			u.User = url.User(placeholder)
		}
	}
	u.RawQuery = h.hideQuery(u.RawQuery)
	if !isHarmless(u.Fragment) {
		h.hide(u.Fragment, false)
		u.Fragment, u.RawFragment = placeholder, ""
	}
	if u.Scheme == listScheme {
		u.Opaque = h.hideList(u.Opaque)
		before := u.EscapedPath()
		if after := h.hideList(before); after != before {
			u.RawPath = after
			u.Path, _ = url.PathUnescape(after) // can't fail, hideList has escaped it properly
		}
		return u
	}
	u.Opaque = h.hideOpaque(u)
	if after := h.hidePath(u.Path); after != u.Path {
		u.Path, u.RawPath = after, ""
	}
	return u
}

func (h *hider) hideList(escaped string) string {
	entries := strings.Split(escaped, ",")
	for i, entry := range entries {
		slash := ""
		if i == 0 && strings.HasPrefix(entry, "/") {
			slash, entry = "/", entry[1:]
		}
		text, err := url.PathUnescape(entry)
		if err != nil {
			text = h.hideUnparsed(entry)
		} else if after := h.hideText(text); after == text {
			continue
		} else {
			text = after
		}
		entries[i] = slash + url.PathEscape(text)
	}
	return strings.Join(entries, ",")
}

func (h *hider) hideText(text string) string {
	prefix := ""
	u, err := url.Parse(text)
	if err != nil { // no scheme, so package failover would read it as a DNS name
		prefix = "dns:///"
		u, err = url.Parse(prefix + text)
	}
	if err != nil {
		return h.hideUnparsed(text)
	}
	inner := &hider{}
	after := inner.hideTarget(*u)
	h.secrets = append(h.secrets, inner.secrets...)
	if !inner.changed {
		return text
	}
	h.changed = true
	return strings.TrimPrefix(after.String(), prefix)
}

func (h *hider) hideUnparsed(text string) string {
	if end := strings.LastIndex(text, "@"); end >= 0 {
		begin := 0
		if i := strings.Index(text[:end], "://"); i >= 0 {
			begin = i + len("://")
		}
		_, password, _ := strings.Cut(text[begin:end], ":")
		h.hide(password, true)
		h.changed = true
		text = text[:begin] + placeholder + text[end:]
	}
	if i := strings.IndexAny(text, "?#"); i >= 0 {
		h.changed = true
		text = text[:i+1] + placeholder
	}
	return text
}

func (h *hider) hideOpaque(u url.URL) string {
	end := strings.LastIndex(u.Opaque, "@")
	if end < 0 || strings.HasPrefix(u.Scheme, "unix") {
		return u.Opaque
	}
	_, password, _ := strings.Cut(":"+u.Opaque[:end], ":")
	h.hide(password, true)
	return placeholder + u.Opaque[end:]
}

func (h *hider) hidePath(path string) string {
	// If there are too many slashes, as in consul:///user:secret@host, the password ends up in the
	// path.
	segments := strings.Split(path, "/")
	for i, s := range segments {
		end := strings.LastIndex(s, "@")
		if end < 0 {
			continue
		}
		if user, password, ok := strings.Cut(s[:end], ":"); ok {
			h.hide(password, true)
			segments[i] = user + ":" + placeholder + s[end:]
		}
	}
	return strings.Join(segments, "/")
}

func (h *hider) hideQuery(raw string) string {
	pairs := strings.Split(raw, "&")
	for i, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			name, value = "", pair
		}
		if plain, err := url.QueryUnescape(name); err == nil && slices.Contains(visibleParameters, plain) || isHarmless(value) {
			continue
		}
		if plain, err := url.QueryUnescape(value); err == nil {
			h.hide(plain, isSecretName(name))
		}
		h.changed = h.changed || value != placeholder
		if ok {
			pairs[i] = name + "=" + placeholder
		} else {
			pairs[i] = placeholder
		}
	}
	return strings.Join(pairs, "&")
}

func isHarmless(value string) bool {
	_, notBool := strconv.ParseBool(value)
	_, notDuration := time.ParseDuration(value)
	return len(value) < minSecretLength || notBool == nil || notDuration == nil
}

func isSecretName(name string) bool {
	// We hide these values no matter where they show up. For any other name, we only hide the value
	// in the target itself. If we hid the "east" of dc=east everywhere, we'd also hide parts of
	// host names.
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"pass", "pwd", "token", "secret", "key", "auth", "cred", "sig"}, func(part string) bool { return strings.Contains(name, part) })
}
