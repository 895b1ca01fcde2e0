// Package place knows where the client itself runs: its zone, region and node, by what somebody
// says of it. Nothing is guessed. Who prefers near endpoints asks options.Settings for the place of
// a channel, again each time: what a source knows of it (Learned) may come later.
package location

import (
	"fmt"
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/understudy-lb/understudy/internal/printable"
)

// Location is where a client or a server runs. A field is "" where that is not known.
type Location struct{ Region, Zone, Node string }

// Or returns p with the fields of other where it has none.
func (p Location) Or(other Location) Location {
	for to, from := range map[*string]string{&p.Region: other.Region, &p.Zone: other.Zone, &p.Node: other.Node} {
		if *to == "" {
			*to = from
		}
	}
	return p
}

// Serves reports whether an endpoint can be near a client here, where it prefers by "zone", "node",
// "hints" or "balance"; so it can where it prefers nothing, "".
func (p Location) Serves(prefer string) bool {
	switch prefer {
	case "":
		return true
	case "zone":
		return p.Zone != "" || p.Region != ""
	case "balance":
		return p.Zone != ""
	case "hints":
		return p.Zone != "" || p.Node != ""
	default:
		return p != Location{}
	}
}

// SameZone reports whether both are known to be in one zone: zones of one name in two regions
// are two.
func (p Location) SameZone(other Location) bool {
	return p.Zone != "" && p.Zone == other.Zone && (p.Region == other.Region || p.Region == "" || other.Region == "")
}

// SameRegion reports whether both are known to be in one region.
func (p Location) SameRegion(other Location) bool { return p.Region != "" && p.Region == other.Region }

// SameNode reports whether both are known to be on one node.
func (p Location) SameNode(other Location) bool { return p.Node != "" && p.Node == other.Node }

// Of returns the client's place by what it is given in options, and where these say nothing by the
// environment, which env reads. The notes say what of the environment has no effect.
func Of(given Location, env func(string) string) (p Location, notes []string) {
	read := func(variable string) string {
		text := env(variable)
		if problem := Problem(text); problem != "" {
			notes = append(notes, variable+" has no effect: "+problem)
			return ""
		}
		return text
	}
	return given.Or(Location{Zone: read("UNDERSTUDY_ZONE"), Region: read("UNDERSTUDY_REGION"), Node: read("UNDERSTUDY_NODE")}), notes
}

// most is how many bytes a name may have. Kubernetes and clouds have 63 at most.
const most = 256

// Problem says what is wrong with the name of a zone, a region or a node, "" for nothing.
func Problem(name string) string {
	if len(name) <= most && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl) && strings.TrimSpace(name) == name {
		return ""
	}
	return fmt.Sprintf("%s given, want a name of at most %d bytes, without control characters and without spaces around it", printable.Quote(name), most)
}

// Teller tells a place, which may become known later. It is safe for concurrent use.
type Teller interface{ Location() Location }

// Learned is a place that is found out later. It is safe for concurrent use; the zero value is no
// place, and nil learns nothing.
type Learned struct{ place atomic.Pointer[Location] }

// Set takes the place.
func (l *Learned) Set(p Location) {
	if l != nil {
		l.place.Store(&p)
	}
}

// Location returns what was set last, or no place.
func (l *Learned) Location() Location {
	if l == nil || l.place.Load() == nil {
		return Location{}
	}
	return *l.place.Load()
}
