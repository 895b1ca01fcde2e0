package topology

import (
	"slices"

	"github.com/understudy-lb/understudy/internal/inorder"
)

// uncheckedEndpoints lists the endpoints whose addresses must be checked, because the previous
// answer did not contain them. The addresses of all other endpoints are valid and distinct, because
// the previous answer was valid.
type uncheckedEndpoints struct {
	all bool // check all endpoints, because more than maxUnchecked are new
	few []place
}

// maxUnchecked is the maximum length of uncheckedEndpoints.few. Each new endpoint is compared with
// all others, so more would be slow.
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
				if n.few = append(n.few, place{i, j, k}); len(n.few) > maxUnchecked {
					return uncheckedEndpoints{all: true}
				}
			}
		}
	}
	return n
}

// covers reports whether checking the endpoint before in the previous answer also covers e.
func covers(before, e *Endpoint) bool {
	return slices.Equal(before.Addresses, e.Addresses) && (usable(before.Health) || !usable(e.Health))
}

func (n uncheckedEndpoints) has(at place) bool { return n.all || slices.Contains(n.few, at) }

// distinct reports whether the first addresses of all endpoints are known to be distinct. If it
// returns false, they may be distinct nevertheless.
func (n uncheckedEndpoints) distinct(a *Answer) bool {
	if n.all {
		return false
	}
	same := false
	for _, at := range n.few {
		e := &a.Priorities[at.priority].Localities[at.locality].Endpoints[at.endpoint]
		each(a, func(other place, o *Endpoint) {
			same = same || other != at && len(e.Addresses) > 0 && len(o.Addresses) > 0 && o.Addresses[0] == e.Addresses[0]
		})
	}
	return !same
}
