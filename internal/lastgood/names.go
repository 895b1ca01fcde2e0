package lastgood

import (
	"maps"
	"time"

	"github.com/understudy-lb/understudy/discovery"
)

// Names maps each DNS name to the result of its lookup.
type Names map[string]discovery.Name

// Since returns the names that were confirmed at or after earliest. A name without a time of its
// own counts as confirmed at the time otherwise.
func (n Names) Since(earliest, otherwise time.Time) Names {
	n = maps.Clone(n)
	for name, known := range n {
		if known.Until.IsZero() {
			known.Until = otherwise
		}
		if n[name] = known; known.Until.Before(earliest) {
			delete(n, name)
		}
	}
	return n
}

// orLater merges n with other: for each name, the later confirmation wins. A name in n without a
// time is still valid. A name in other without a time was valid until confirmed.
func (n Names) orLater(other Names, confirmed time.Time) Names {
	n = maps.Clone(n)
	for name, known := range other.Since(time.Time{}, confirmed) {
		if mine := n[name].Until; !mine.IsZero() && mine.Before(known.Until) {
			n[name] = known
		}
	}
	return n
}

func (n Names) size() (bytes int) {
	const name, address = 100, 20
	for of, known := range n {
		bytes += name + len(of)
		for _, a := range known.Addresses {
			bytes += address + len(a)
		}
	}
	return bytes
}
