package topology

import (
	"slices"

	"github.com/understudy-lb/understudy/internal/inorder"
)

// news has the endpoints whose addresses were not in the last answer. The addresses of all other
// endpoints are valid and distinct, because that answer was valid.
type news struct {
	all bool // more than fewNews endpoints are new
	few []place
}

// fewNews is the maximum length of news.few, because each new endpoint is compared with all others.
const fewNews = 16

func newsOf(a *Answer, last *Checked) news {
	if last == nil || last.skip != nil {
		return news{all: true}
	}
	var n news
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
				if n.few = append(n.few, place{i, j, k}); len(n.few) > fewNews {
					return news{all: true}
				}
			}
		}
	}
	return n
}

// covers reports whether the addresses of e were already checked in before.
func covers(before, e *Endpoint) bool {
	return slices.Equal(before.Addresses, e.Addresses) && (usable(before.Health) || !usable(e.Health))
}

func (n news) has(at place) bool { return n.all || slices.Contains(n.few, at) }

// distinct reports whether the first addresses of all endpoints are known to be distinct.
func (n news) distinct(a *Answer) bool {
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
