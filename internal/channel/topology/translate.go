package topology

import (
	"cmp"
	"strings"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/config/lbconfig"
)

const million = lbconfig.Million

// Translator translates answers to trees. It keeps the names of children from update to update, so
// each channel needs its own Translator. The zero value is ready to use. It is not safe for
// concurrent use.
type Translator struct {
	// Name is a prefix for the names of children, as in "NAME/child0". With different prefixes, the
	// discovery mechanisms of a channel have different names (see Join).
	Name string
	// TrustNames means that the certificate of an endpoint with a hostname is verified against this
	// hostname.
	TrustNames bool
	// ServerName is the name against which all other certificates are verified. "" means the channel's
	// authority.
	ServerName string
	// Near configures which endpoints of a priority are preferred.
	Near  Near
	names childNames
	built map[path]builtLocality
}

// Translate returns the tree for an answer. If the answer has no priorities, the tree makes all
// calls fail. The tree omits endpoints that cannot receive calls, but keeps their localities and
// priorities. A priority without endpoints counts as failed.
//
// If the answer breaks a rule, Translate returns an *Invalid and keeps the state of the previous
// answer.
func (t *Translator) Translate(a *Answer) (Tree, error) {
	c, err := Check(a)
	if err != nil {
		return Tree{}, err
	}
	return t.Tree(c), nil
}

// Tree is like Translate, for an answer that Check has returned.
func (t *Translator) Tree(c *Checked) Tree {
	a, groups := t.Near.split(c.Answer)
	if a != c.Answer {
		if split, err := check(a, uncheckedEndpoints{all: c.skip != nil}); err == nil {
			split.Unusable, c = c.Unusable, split
		} else { // not known to happen
			a, groups = Near{}.split(c.Answer)
		}
	}
	children := t.assignNames(a, groups)
	last := t.built
	t.built = make(map[path]builtLocality, len(last))
	tree := Tree{Endpoints: make([]resolver.Endpoint, 0, c.Endpoints)}
	tree.priorities = make([]priorityChild, 0, len(a.Priorities))
	drops := dropCategories(a)
	for i := range a.Priorities {
		p := &a.Priorities[i]
		child := priorityChild{
			name:               children[i],
			title:              titleOf(p, groups[i].name),
			continuesPriority:  i > 0 && groups[i].sourcePriority == groups[i-1].sourcePriority,
			cluster:            a.Service,
			ignoreReresolution: true, // the source sends new addresses without a request
			drops:              drops,
			localities:         make(map[string]uint32, len(p.Localities)),
		}
		before := len(tree.Endpoints)
		t.appendLocalities(&tree, c, i, &child, last)
		if len(tree.Endpoints) == before {
			child.unusableReason = cmp.Or(a.Why, unusableReason(p))
		}
		tree.priorities = append(tree.priorities, child)
	}
	tree.Why = c.Unusable
	return tree
}

// appendLocalities appends the endpoints of priority i to the tree, and adds its localities to
// child. It reuses the endpoints of the previous tree, which are in last.
func (t *Translator) appendLocalities(tree *Tree, c *Checked, i int, child *priorityChild, last map[path]builtLocality) {
	for j := range c.Priorities[i].Localities {
		l := &c.Priorities[i].Localities[j]
		name := NameOf(l)
		child.localities[name] = c.weights[i][j]
		at := path{child.name, name}
		tree.Endpoints, t.built[at] = t.build(tree.Endpoints, l, endpointIndex{i, j, 0}, c.skip, at, last[at])
	}
}

// assignNames returns the names of the children for the priorities of an answer, and stores them
// for the next answer. It identifies near groups by their addresses, because a locality can move to
// another group when groups are merged.
func (t *Translator) assignNames(a *Answer, groups []group) (names []string) {
	hasNearGroups := len(groups) > 0 && t.Near.Prefer != ""
	members := make([][]member, len(a.Priorities))
	for i, p := range a.Priorities {
		for j := range p.Localities {
			members[i] = append(members[i], member{a.Service, NameOf(&p.Localities[j])})
		}
	}
	children, state := t.names.assign(members, hasNearGroups, func(i int) map[string]bool { return addressesOf(&a.Priorities[i]) })
	t.names = state
	prefix := ""
	if t.Name != "" {
		prefix = t.Name + "/"
	}
	for _, c := range children {
		names = append(names, prefix+c.name)
	}
	return names
}

// addressesOf maps the first address of each endpoint to whether the endpoint can receive calls.
func addressesOf(p *Priority) map[string]bool {
	all := make(map[string]bool)
	for _, l := range p.Localities {
		for _, e := range l.Endpoints {
			if len(e.Addresses) > 0 {
				all[e.Addresses[0]] = all[e.Addresses[0]] || isUsable(e.Health)
			}
		}
	}
	return all
}

// titleOf returns the name of a priority for users. It consists of the priority's localities and,
// for a near group, of the distance.
func titleOf(p *Priority, near string) string {
	var localities []string
	for j := range p.Localities {
		localities = append(localities, NameOf(&p.Localities[j]))
	}
	title := strings.Join(localities, ", ")
	if near != "" && title != NoLocality {
		title += " (" + near + ")"
	}
	return title
}

func dropCategories(a *Answer) (drops []lbconfig.DropCategory) {
	for _, d := range a.Drops {
		drops = append(drops, lbconfig.DropCategory{Category: strings.ToValidUTF8(d.Category, "\uFFFD"), RequestsPerMillion: d.PerMillion})
	}
	return drops
}
