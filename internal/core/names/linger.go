// Package linger keeps a value for a while after answers have stopped to hold it. Answers
// that rotate subsets of a large set would otherwise close good connections.
package names

import "slices"

// Lingering holds the values of recent answers. The zero value is empty. It is not safe for
// concurrent use.
type Lingering[K comparable, V any] struct{ items []item[K, V] }

type item[K comparable, V any] struct {
	key    K
	value  V
	misses int // how many answers in a row lacked it
}

// Next takes an answer and returns the values that are there now: those of the answer, and
// those that fewer than after answers in a row lacked. key identifies a value. Old ones
// keep their places, with the values that they last had; new ones follow.
//
//	after 2:  a b  ->  a b
//	          c b  ->  a b c   a is missing once
//	          b c  ->  b c     and twice
func (s *Lingering[K, V]) Next(after int, answer []V, key func(V) K) []V {
	latest := make(map[K]V, len(answer))
	for _, v := range answer {
		if _, twice := latest[key(v)]; !twice {
			latest[key(v)] = v
		}
	}
	for i := range s.items {
		it := &s.items[i]
		if v, ok := latest[it.key]; ok {
			it.value, it.misses = v, 0
			delete(latest, it.key)
		} else {
			it.misses++
		}
	}
	s.items = slices.DeleteFunc(s.items, func(it item[K, V]) bool { return it.misses >= after })
	for _, v := range answer {
		if _, isNew := latest[key(v)]; isNew {
			s.items = append(s.items, item[K, V]{key: key(v), value: v})
			delete(latest, key(v))
		}
	}
	return s.Values()
}

// Clone returns a copy of s.
func (s *Lingering[K, V]) Clone() Lingering[K, V] { return Lingering[K, V]{slices.Clone(s.items)} }

// Values returns the values that are there now.
func (s *Lingering[K, V]) Values() []V {
	values := make([]V, len(s.items))
	for i, it := range s.items {
		values[i] = it.value
	}
	return values
}
