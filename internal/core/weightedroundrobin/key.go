package weightedroundrobin

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Address is the part of an address that identifies an endpoint.
type Address struct{ Addr, ServerName string }

// Key identifies an endpoint by the set of its addresses. The key of an endpoint with one address is
// its Addr. If it has several addresses or a server name, or if the Addr begins with a quotation
// mark, the key is a list of quoted texts.
type Key string

// KeyOf returns the key of an endpoint with at least one address. It may sort the slice.
func KeyOf(addresses []Address) Key {
	if len(addresses) > 1 {
		slices.SortFunc(addresses, func(a, b Address) int {
			return cmp.Or(cmp.Compare(a.Addr, b.Addr), cmp.Compare(a.ServerName, b.ServerName))
		})
		addresses = slices.Compact(addresses)
	}
	if a := addresses[0]; len(addresses) == 1 && !a.isQuoted() {
		return Key(a.Addr)
	}
	return Key(appendQuoted(nil, addresses...))
}

// Is reports whether k is the key of an endpoint with the address a, usually without an allocation.
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
