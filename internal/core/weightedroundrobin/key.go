package weightedroundrobin

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Address is one address of an endpoint, as far as it tells endpoints apart.
type Address struct{ Addr, ServerName string }

// Key identifies an endpoint from update to update: it is the set of its addresses, in
// whatever order they come.
type Key struct {
	smallest Address
	others   string // sorted; "" where there is only one
}

// KeyOf returns the key of an endpoint with these addresses, of which there is at least
// one. It may sort them.
func KeyOf(addresses []Address) Key {
	if len(addresses) == 1 {
		return Key{smallest: addresses[0]}
	}
	slices.SortFunc(addresses, func(a, b Address) int {
		return cmp.Or(cmp.Compare(a.Addr, b.Addr), cmp.Compare(a.ServerName, b.ServerName))
	})
	addresses = slices.Compact(addresses)
	var others strings.Builder
	for _, a := range addresses[1:] {
		others.WriteString(strconv.Quote(a.Addr))
		others.WriteString(strconv.Quote(a.ServerName))
	}
	return Key{addresses[0], others.String()}
}
