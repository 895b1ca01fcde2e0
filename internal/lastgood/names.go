package lastgood

import (
	"maps"
	"time"

	"github.com/understudy-lb/understudy/discovery"
)

// Names holds the names in an answer.
type Names map[string]discovery.Name

// Since returns the names that were confirmed at earliest or later. A name without a time counts as
// confirmed at the time otherwise.
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

// orLater returns n, except that a name that other confirmed later is taken from other. A name
// without a time is still valid in n; in other, it was valid until the time confirmed.
func (n Names) orLater(other Names, confirmed time.Time) Names {
	n = maps.Clone(n)
	for name, known := range other.Since(time.Time{}, confirmed) {
		if mine := n[name].Until; !mine.IsZero() && mine.Before(known.Until) {
			n[name] = known
		}
	}
	return n
}

// size returns the approximate size of n in bytes.
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
