package weightedroundrobin

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

type Address struct{ Addr, ServerName string }

// Key identifies an endpoint by its set of addresses. For a single address, that's just its Addr.
// If there are several addresses, or a server name, or the Addr starts with a quotation mark, it's
// a list of quoted strings instead.
type Key string

// KeyOf returns the key of an endpoint with at least one address. It may sort the slice.
func KeyOf(addresses []Address) Key {
	slices.SortFunc(addresses, func(a, b Address) int {
		return cmp.Or(cmp.Compare(a.Addr, b.Addr), cmp.Compare(a.ServerName, b.ServerName))
	})
	addresses = slices.Compact(addresses)
	if a := addresses[0]; len(addresses) == 1 && !a.isQuoted() {
		return Key(a.Addr)
	}
	return Key(appendQuoted(nil, addresses...))
}

// Is reports whether k is the key of an endpoint with just the address a. It usually doesn't
// allocate.
func (k Key) Is(a Address) bool {
	if !a.isQuoted() {
		return string(k) == a.Addr
	}
	var buffer [128]byte
	return string(k) == string(appendQuoted(buffer[:0], a))
}

func (a Address) isQuoted() bool { return a.ServerName != "" || strings.HasPrefix(a.Addr, `"`) }

func appendQuoted(text []byte, addresses ...Address) []byte {
	for _, a := range addresses {
		text = strconv.AppendQuote(strconv.AppendQuote(text, a.Addr), a.ServerName)
	}
	return text
}
