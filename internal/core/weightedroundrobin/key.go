package weightedroundrobin

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Address is the part of an address that identifies an endpoint.
type Address struct{ Addr, ServerName string }

// Key identifies an endpoint by the set of its addresses.
type Key struct {
	smallest Address
	others   string // the other addresses, sorted
}

// KeyOf returns the key of an endpoint with at least one address. It may sort the slice.
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
