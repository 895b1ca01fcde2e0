package cds

import (
	"slices"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/feed"
)

// found holds what is known of one name.
type found struct {
	known     bool
	addresses []string  // of its last answer
	until     time.Time // until when that held, zero where it still does
	err       error     // what went wrong since
}

// fail notes that the name could not be looked up.
func (f *found) fail(err error) {
	f.known, f.err = true, err
	if f.until.IsZero() {
		f.until = time.Now()
	}
}

// equal reports whether f and other say the same.
func (f found) equal(other found) bool {
	same := f.known == other.known && f.until.Equal(other.until) && slices.Equal(f.addresses, other.addresses)
	return same && (f.err == nil) == (other.err == nil) && (f.err == nil || f.err.Error() == other.err.Error())
}

// recall returns what was remembered of the names: nothing is heard of them yet.
func (s *strict) recall(names feed.Names) []found {
	list := make([]found, len(s.hosts))
	for i, host := range s.hosts {
		list[i] = found{addresses: names[host].Addresses, until: names[host].Until}
	}
	return list
}

// addressesIn returns the addresses of endpoints.
func addressesIn(endpoints []resolver.Endpoint) []string {
	var addresses []string
	for _, e := range endpoints {
		for _, a := range e.Addresses {
			addresses = append(addresses, a.Addr)
		}
	}
	return addresses
}
