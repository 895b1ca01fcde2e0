// Package location determines the client's region, zone and node from options, the environment and
// sources. A source may only learn them after a while, so get the location from options.Settings
// every time you need it.
package location

import (
	"fmt"
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

// Location is where a client or a server is. Fields are "" if unknown.
type Location struct{ Region, Zone, Node string }

// Or fills in p's empty fields from other.
func (p Location) Or(other Location) Location {
	for to, from := range map[*string]string{&p.Region: other.Region, &p.Zone: other.Zone, &p.Node: other.Node} {
		if *to == "" {
			*to = from
		}
	}
	return p
}

// Serves reports whether we know enough about the location for this value of prefer.
func (p Location) Serves(prefer string) bool {
	switch prefer {
	case "zone":
		return p.Zone != "" || p.Region != ""
	case "hints":
		return p.Zone != "" || p.Node != ""
	}
	return true
}

// SameZone reports whether both are in the same zone. Different regions may use the same zone name,
// so we compare regions too.
func (p Location) SameZone(other Location) bool {
	return p.Zone != "" && p.Zone == other.Zone && (p.Region == other.Region || p.Region == "" || other.Region == "")
}

func (p Location) SameRegion(other Location) bool { return p.Region != "" && p.Region == other.Region }

// Of returns the client's location. Whatever isn't given is read from environment variables, using
// env. Invalid variables are ignored, with a note for each.
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

const maxNameLength = 256 // bytes; Kubernetes and cloud providers allow 63

// Check validates the name of a region, zone or node.
func Check(name string) error {
	if len(name) <= maxNameLength && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl) && strings.TrimSpace(name) == name {
		return nil
	}
	return fmt.Errorf("%s given, want a name of at most %d bytes, without control characters and without spaces around it", printable.Quote(name), maxNameLength)
}

// Teller is implemented by sources that can tell where the client is. They may only find out some
// time after they've started.
type Teller interface{ Location() Location }

// Learned is for sources that don't know the location up front, e.g. because they learn it from a
// server. It's safe for concurrent use, and Set on a nil *Learned does nothing.
type Learned struct{ current atomic.Pointer[Location] }

func (l *Learned) Set(p Location) {
	if l != nil {
		l.current.Store(&p)
	}
}

func (l *Learned) Location() Location {
	if l == nil || l.current.Load() == nil {
		return Location{}
	}
	return *l.current.Load()
}
