package topology

import (
	"cmp"
	"slices"
)

// subsetItem is an endpoint. Items with the same Key are the same endpoint. Rank is a 64-bit hash
// of its first address, with a seed that differs between clients.
type subsetItem[K comparable] struct {
	Rank uint64
	Key  K
}

// chooseSubset reports which items are in the subset (gRFC A68): those with the lowest ranks, and
// among equal ranks the first. Items with the same key count once and are chosen together. An item
// has the same rank in every answer, so the subset loses an item only if the item is removed or if
// a new item with a lower rank replaces it.
//
//	size 2: a:30 b:10 c:20  ->  b c
//	        b:10 c:20 d:15  ->  b d    the removal of a changes nothing; d replaces c
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
