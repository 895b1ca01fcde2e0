package topology

import (
	"cmp"
	"strings"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/config/lbconfig"
)

const million = lbconfig.Million

// Translator turns answers into trees. Each channel needs its own, because it keeps the names of
// children stable across updates. The zero value is ready to use. Not safe for concurrent use.
type Translator struct {
	// Name is a prefix for the names of children, e.g. "NAME/child0". Mechanisms that share a
	// channel need different ones, see Combine.
	Name string
	// TrustNames makes us verify an endpoint's certificate against its hostname, if it has one.
	TrustNames bool
	// ServerName is the name for all other certificates. If it's "", we use the channel's
	// authority.
	ServerName string
	Near       Near
	names      childNames
	built      map[path]builtLocality
}

// Translate returns the tree for an answer. Endpoints that can't receive calls aren't in the tree,
// but their localities and priorities are, and a priority without endpoints counts as failed. With
// no priorities at all, every call fails.
//
// If the answer breaks a rule, Translate returns an error and the Translator's state doesn't
// change.
func (t *Translator) Translate(a *discovery.Answer) (Tree, error) {
	c, err := Check(a, nil)
	if err != nil {
		return Tree{}, err
	}
	return t.Tree(c), nil
}

// Tree is like Translate, except that Check must have accepted the answer already.
func (t *Translator) Tree(c *Checked) Tree {
	groups := t.Near.split(c)
	children := t.names.assign(groups, c.Service)
	last := t.built
	t.built = make(map[path]builtLocality, len(last))
	tree := Tree{Endpoints: make([]resolver.Endpoint, 0, c.Endpoints), Why: c.Why}
	tree.Priorities = make([]TreePriority, 0, len(groups))
	drops := dropCategories(c.Answer)
	for i := range groups {
		g := &groups[i]
		child := TreePriority{
			Child:              children[i].name,
			Name:               g.title(),
			Cluster:            c.Service,
			continuesPriority:  i > 0 && g.sourcePriority == groups[i-1].sourcePriority,
			ignoreReresolution: true, // sources send new addresses on their own
			drops:              drops,
			localities:         make([]treeLocality, 0, len(g.Localities)),
		}
		if t.Name != "" {
			child.Child = t.Name + "/" + child.Child
		}
		before := len(tree.Endpoints)
		for j := range g.Localities {
			l := &g.Localities[j]
			at := path{child.Child, NameOf(l)}
			tree.Endpoints, t.built[at] = t.build(tree.Endpoints, l, at, last[at])
			child.localities = append(child.localities, treeLocality{at[1], l.Weight, len(t.built[at].endpoints)})
		}
		if len(tree.Endpoints) == before {
			whole := g.Priority
			if g.name == "" { // the priority wasn't split
				whole = c.Given.Priorities[g.sourcePriority]
			}
			child.Why = cmp.Or(c.Given.Why, unusableReason(whole))
		}
		tree.Priorities = append(tree.Priorities, child)
	}
	return tree
}

func (g *group) title() string {
	var localities []string
	for j := range g.Localities {
		localities = append(localities, NameOf(&g.Localities[j]))
	}
	title := strings.Join(localities, ", ")
	if g.name != "" && title != NoLocality {
		title += " (" + g.name + ")"
	}
	return title
}

func dropCategories(a *discovery.Answer) (drops []lbconfig.DropCategory) {
	for _, d := range a.Drops {
		drops = append(drops, lbconfig.DropCategory{Category: strings.ToValidUTF8(d.Category, "\uFFFD"), RequestsPerMillion: d.PerMillion})
	}
	return drops
}
