// Package tally adds up gauges over all channels of the process. An exporter keeps only the last
// value of a gauge, and channels to the same target have the same labels, so each channel has to
// report the sum over all of them. This package also limits the number of series of counters.
package tally

import "sync"

// Board has a sum for each set of labels. The zero value is ready to use. A Board is safe for
// concurrent use.
type Board[L comparable, V Value[V]] struct {
	mu   sync.Mutex
	sums map[L]V
}

type Value[V any] interface {
	comparable
	Plus(V) V
}

// Add adds value to the sum for labels. If that makes it zero, we delete the entry.
func (b *Board[L, V]) Add(labels L, value V) {
	var zero V
	if value == zero {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sums == nil {
		b.sums = make(map[L]V)
	}
	if sum := b.sums[labels].Plus(value); sum != zero {
		b.sums[labels] = sum
	} else {
		delete(b.sums, labels)
	}
}

func (b *Board[L, V]) Sum(labels L) V {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sums[labels]
}
