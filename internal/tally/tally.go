// Package tally sums up what gauges show, over all channels of the process. Two channels
// to one target have the same labels, and of two values with the same labels a gauge
// shows one: so each channel reports the sum, and whoever is last reports the same. It also
// bounds how many series counters have.
package tally

import "sync"

// Board holds sums by their labels. The zero value is ready to use. It is safe for
// concurrent use.
type Board[L comparable, V Value[V]] struct {
	mu   sync.Mutex
	sums map[L]V
}

// Value is what is summed up: it can be compared with its zero value, which is nothing.
type Value[V any] interface {
	comparable
	Plus(V) V
}

// Add adds to the sum under labels. A sum that becomes nothing is forgotten.
func (b *Board[L, V]) Add(labels L, value V) {
	var nothing V
	if value == nothing {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sums == nil {
		b.sums = make(map[L]V)
	}
	if sum := b.sums[labels].Plus(value); sum != nothing {
		b.sums[labels] = sum
	} else {
		delete(b.sums, labels)
	}
}

// Sum returns the sum under labels.
func (b *Board[L, V]) Sum(labels L) V {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sums[labels]
}
