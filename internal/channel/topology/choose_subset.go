package topology

import (
	"cmp"
	"slices"
)

// subsetItem is an endpoint for chooseSubset. Items with the same Key are duplicates of one
// endpoint. Rank is a hash of the endpoint's first address and the client's seed.
type subsetItem[K comparable] struct {
	Rank uint64
	Key  K
}

// chooseSubset reports which items are in the subset (gRFC A68). These are the items with the
// lowest ranks. Among items with equal ranks, earlier items precede later ones. Items with the same
// key count as one item. The rank of an item never changes, so an item leaves the subset only when
// it is removed, or when a new item with a lower rank replaces it.
//
//	size 2: a:30 b:10 c:20  ->  b c
//	        b:10 c:20 d:15  ->  b d    the removal of a has no effect; d replaces c
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
