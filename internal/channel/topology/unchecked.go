package topology

import (
	"slices"

	"github.com/understudy-lb/understudy/internal/lb/inorder"
)

// uncheckedEndpoints identifies the endpoints whose addresses must be checked, because the previous
// answer did not contain them. The addresses of all other endpoints are valid and distinct, because
// the previous answer was valid.
type uncheckedEndpoints struct {
	all  bool // check all endpoints, because more than maxUnchecked are new
	list []endpointIndex
}

// maxUnchecked is the maximum length of uncheckedEndpoints.list. Each endpoint in this list is
// compared with all others, so a longer list would be slow.
const maxUnchecked = 16

func uncheckedIn(a *Answer, last *Checked) uncheckedEndpoints {
	if last == nil || last.skip != nil {
		return uncheckedEndpoints{all: true}
	}
	var n uncheckedEndpoints
	for i, p := range a.Priorities {
		for j := range p.Localities {
			var before []Endpoint
			if i < len(last.Priorities) && j < len(last.Priorities[i].Localities) {
				before = last.Priorities[i].Localities[j].Endpoints
			}
			var search inorder.Search
			for k := range p.Localities[j].Endpoints {
				e := &p.Localities[j].Endpoints[k]
				if search.Find(len(before), func(i int) bool { return covers(&before[i], e) }) >= 0 {
					continue
				}
				if n.list = append(n.list, endpointIndex{i, j, k}); len(n.list) > maxUnchecked {
					return uncheckedEndpoints{all: true}
				}
			}
		}
	}
	return n
}

// covers reports whether e need not be checked, because the endpoint before in the previous answer
// was checked.
func covers(before, e *Endpoint) bool {
	return slices.Equal(before.Addresses, e.Addresses) && (isUsable(before.Health) || !isUsable(e.Health))
}

func (n uncheckedEndpoints) contains(index endpointIndex) bool {
	return n.all || slices.Contains(n.list, index)
}

// areDistinct reports whether the first addresses of all endpoints are known to be distinct. If it
// returns false, the addresses may nevertheless be distinct.
func (n uncheckedEndpoints) areDistinct(a *Answer) bool {
	if n.all {
		return false
	}
	foundEqual := false
	for _, index := range n.list {
		e := &a.Priorities[index.priority].Localities[index.locality].Endpoints[index.endpoint]
		forEachEndpoint(a, func(other endpointIndex, o *Endpoint) {
			foundEqual = foundEqual || other != index && len(e.Addresses) > 0 && len(o.Addresses) > 0 && o.Addresses[0] == e.Addresses[0]
		})
	}
	return !foundEqual
}
