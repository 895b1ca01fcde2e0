// Package subset chooses the endpoints that one client of many uses (gRFC A68).
package topology

import (
	"cmp"
	"slices"
)

// subsetItem is an endpoint: its key, by which it is known if it is given twice, and the 64-bit hash
// of its first address and the client's seed.
type subsetItem[K comparable] struct {
	Rank uint64
	Key  K
}

// chooseSubset returns which items are of the subset: those with the lowest ranks, of equal ones the
// first. An item that is given twice counts once, and all of it is chosen. An item keeps its rank
// from answer to answer, so a subset loses nothing but what is gone or what a new item of a lower
// rank replaces.
//
//	size 2: a:30 b:10 c:20  ->  b c
//	        b:10 c:20 d:15  ->  b d    a leaves, which changes nothing; d replaces c
func chooseSubset[K comparable](items []subsetItem[K], size int) []bool {
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(items[a].Rank, items[b].Rank), cmp.Compare(a, b))
	})
	chosen, keys := make([]bool, len(items)), make(map[K]bool)
	for _, i := range order {
		if len(keys) < size {
			keys[items[i].Key] = true
		}
		chosen[i] = keys[items[i].Key]
	}
	return chosen
}
