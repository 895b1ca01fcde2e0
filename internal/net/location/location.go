// Package location determines the client's region, zone and node from options, the environment and
// sources. A source may learn the location late, so it must be obtained from options.Settings each
// time it is needed.
package location

import (
	"fmt"
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

// Location is the location of a client or a server. Unknown fields are "".
type Location struct{ Region, Zone, Node string }

// Or returns p with its empty fields filled from other.
func (p Location) Or(other Location) Location {
	for to, from := range map[*string]string{&p.Region: other.Region, &p.Zone: other.Zone, &p.Node: other.Node} {
		if *to == "" {
			*to = from
		}
	}
	return p
}

// Serves is true if p has what this value of the option prefer needs.
func (p Location) Serves(prefer string) bool {
	switch prefer {
	case "zone":
		return p.Zone != "" || p.Region != ""
	case "hints":
		return p.Zone != "" || p.Node != ""
	}
	return true
}

// SameZone is true if both are in the same zone. Two zones of the same name in different regions
// are not.
func (p Location) SameZone(other Location) bool {
	return p.Zone != "" && p.Zone == other.Zone && (p.Region == other.Region || p.Region == "" || other.Region == "")
}

// SameRegion is true if both regions are known and equal.
func (p Location) SameRegion(other Location) bool { return p.Region != "" && p.Region == other.Region }

// Of returns the client's location. It reads fields that are empty in given from environment
// variables, using env. notes lists the invalid variables, which are ignored.
func Of(given Location, env func(string) string) (p Location, notes []string) {
	read := func(variable string) string {
		text := env(variable)
		if err := Check(text); err != nil {
			notes = append(notes, variable+" has no effect: "+err.Error())
			return ""
		}
		return text
	}
	return given.Or(Location{Zone: read("UNDERSTUDY_ZONE"), Region: read("UNDERSTUDY_REGION"), Node: read("UNDERSTUDY_NODE")}), notes
}

// maxNameLength is in bytes. Kubernetes and cloud providers allow 63.
const maxNameLength = 256

// Check validates the name of a region, zone or node.
func Check(name string) error {
	if len(name) <= maxNameLength && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl) && strings.TrimSpace(name) == name {
		return nil
	}
	return fmt.Errorf("%s given, want a name of at most %d bytes, without control characters and without spaces around it", printable.Quote(name), maxNameLength)
}

// Teller is implemented by sources that know the client's location, possibly only some time after
// their start.
type Teller interface{ Location() Location }

// Learned holds a location that a source sets as soon as it is known. It is safe for concurrent
// use. On a nil *Learned, Set has no effect.
type Learned struct{ current atomic.Pointer[Location] }

// Set replaces the location.
func (l *Learned) Set(p Location) {
	if l != nil {
		l.current.Store(&p)
	}
}

// Location returns the location of the last Set, or the zero value.
func (l *Learned) Location() Location {
	if l == nil || l.current.Load() == nil {
		return Location{}
	}
	return *l.current.Load()
}
