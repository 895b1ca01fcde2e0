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
	addr string // of the smallest address
	// rest is the server name of the only address. If there are several addresses, or if the name
	// begins with a quotation mark, it is the quoted list of all that follows addr.
	rest string
}

// KeyOf returns the key of an endpoint with at least one address. It may sort the slice.
func KeyOf(addresses []Address) Key {
	if len(addresses) > 1 {
		slices.SortFunc(addresses, func(a, b Address) int {
			return cmp.Or(cmp.Compare(a.Addr, b.Addr), cmp.Compare(a.ServerName, b.ServerName))
		})
		addresses = slices.Compact(addresses)
	}
	smallest := addresses[0]
	if len(addresses) == 1 && !strings.HasPrefix(smallest.ServerName, `"`) {
		return Key{smallest.Addr, smallest.ServerName}
	}
	rest := strconv.AppendQuote(nil, smallest.ServerName)
	for _, a := range addresses[1:] {
		rest = strconv.AppendQuote(strconv.AppendQuote(rest, a.Addr), a.ServerName)
	}
	return Key{smallest.Addr, string(rest)}
}
