package lastgood

import (
	"maps"
	"time"

	"github.com/understudy-lb/understudy/discovery"
)

// Names maps each DNS name to the result of its lookup.
type Names map[string]discovery.Name

// Since returns the names that were confirmed at or after earliest. A name without a time counts as
// confirmed at fallback.
func (n Names) Since(earliest, fallback time.Time) Names {
	n = maps.Clone(n)
	for name, lookup := range n {
		if lookup.Until.IsZero() {
			lookup.Until = fallback
		}
		if n[name] = lookup; lookup.Until.Before(earliest) {
			delete(n, name)
		}
	}
	return n
}

// mergeLater returns n, with the lookups from other that were confirmed later than those in n. A
// lookup in n without a time is still current. A lookup in other without a time was current until
// confirmed.
func (n Names) mergeLater(other Names, confirmed time.Time) Names {
	n = maps.Clone(n)
	for name, lookup := range other.Since(time.Time{}, confirmed) {
		if current := n[name].Until; !current.IsZero() && current.Before(lookup.Until) {
			n[name] = lookup
		}
	}
	return n
}

func (n Names) size() (bytes int) {
	const name, address = 100, 20
	for key, lookup := range n {
		bytes += name + len(key)
		for _, a := range lookup.Addresses {
			bytes += address + len(a)
		}
	}
	return bytes
}
