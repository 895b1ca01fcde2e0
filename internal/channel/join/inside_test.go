package join

import (
	"crypto/tls"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	estats "google.golang.org/grpc/experimental/stats"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/net/location"
)

type bundle struct {
	credentials.Bundle
	creds credentials.TransportCredentials
}

func (b bundle) TransportCredentials() credentials.TransportCredentials { return b.creds }

func TestCredsCarryName(t *testing.T) {
	named, nameless := credentials.NewTLS(&tls.Config{ServerName: "x"}), insecure.NewCredentials()
	for name, test := range map[string]struct {
		opts resolver.BuildOptions
		want bool
	}{
		"no credentials":     {resolver.BuildOptions{}, false},
		"with a name":        {resolver.BuildOptions{DialCreds: named}, true},
		"without a name":     {resolver.BuildOptions{DialCreds: nameless}, false},
		"a bundle with one":  {resolver.BuildOptions{CredsBundle: bundle{creds: named}}, true},
		"a bundle without":   {resolver.BuildOptions{CredsBundle: bundle{creds: nameless}}, false},
		"an empty bundle":    {resolver.BuildOptions{CredsBundle: bundle{}}, false},
		"credentials win":    {resolver.BuildOptions{DialCreds: nameless, CredsBundle: bundle{creds: named}}, false},
		"credentials win, 2": {resolver.BuildOptions{DialCreds: named, CredsBundle: bundle{creds: nameless}}, true},
	} {
		if got := credsCarryName(test.opts); got != test.want {
			t.Errorf("%s: credsCarryName = %v, want %v", name, got, test.want)
		}
	}
}

type recorder struct {
	estats.UnimplementedMetricsRecorder
}

// The seed must be the same for all resolvers of a channel, and differ between channels.
func TestSeedOfChannel(t *testing.T) {
	one, two := &recorder{}, &recorder{}
	for name, test := range map[string]struct {
		first, second estats.MetricsRecorder
		same          bool
	}{
		"the same channel":                {one, one, true},
		"two channels":                    {one, two, false},
		"no recorder":                     {nil, nil, false},
		"recorders that are not pointers": {recorder{}, recorder{}, false},
	} {
		first, second := seedOf(resolver.BuildOptions{MetricsRecorder: test.first}), seedOf(resolver.BuildOptions{MetricsRecorder: test.second})
		if (first == second) != test.same {
			t.Errorf("%s: the seeds are %d and %d; want the same = %v", name, first, second, test.same)
		}
	}
}

type teller struct {
	discovery.Source
	at location.Location
}

func (t *teller) Location() location.Location { return t.at }

func TestLocationOfClient(t *testing.T) {
	const unknown = "prefer=zone has no effect: the location of this client is unknown"
	knowing, ignorant := &teller{at: location.Location{Zone: "s"}}, &teller{}
	for name, test := range map[string]struct {
		given       options.Settings
		env         string
		entries     []Entry
		want        string // the zone
		before, all int    // the number of notes before the location is needed, and afterwards
	}{
		"no preference":                {options.Settings{Zone: "a"}, "e", []Entry{{}}, "", 0, 0},
		"an option":                    {options.Settings{Prefer: "zone", Zone: "a"}, "e", nil, "a", 0, 0},
		"the environment":              {options.Settings{Prefer: "zone"}, "e", nil, "e", 0, 0},
		"nothing":                      {options.Settings{Prefer: "zone"}, "", nil, "", 1, 1},
		"a source that will know":      {options.Settings{Prefer: "zone"}, "", []Entry{{}, {Mechanism: discovery.Mechanism{Source: knowing}}}, "s", 0, 0},
		"a source that does not":       {options.Settings{Prefer: "zone"}, "", []Entry{{Mechanism: discovery.Mechanism{Source: ignorant}}}, "", 0, 1},
		"an option before a source":    {options.Settings{Prefer: "zone", Zone: "a"}, "", []Entry{{Mechanism: discovery.Mechanism{Source: knowing}}}, "a", 0, 0},
		"a mechanism's preference":     {options.Settings{}, "e", []Entry{{}, {Mechanism: discovery.Mechanism{Prefer: "hints"}}}, "e", 0, 0},
		"one that cannot be fulfilled": {options.Settings{}, "", []Entry{{Mechanism: discovery.Mechanism{Prefer: "hints"}}}, "", 0, 0},
		"a mistake":                    {options.Settings{Prefer: "zone", Zone: "a"}, " e", nil, "a", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("UNDERSTUDY_ZONE", test.env)
			t.Setenv("UNDERSTUDY_REGION", " r")
			var notes []string
			h := newClientLocation(test.given, test.entries, func(text string) {
				if !slices.Contains(notes, text) {
					notes = append(notes, text)
				}
			})
			onMissing := func(n int) {
				t.Helper()
				got := slices.DeleteFunc(slices.Clone(notes), func(text string) bool { return !strings.HasPrefix(text, unknown) })
				if len(got) != n {
					t.Errorf("noted %q, want %d times that the location is unknown", notes, n)
				}
			}
			onMissing(test.before)
			for range 2 {
				if got := h.Location().Zone; got != test.want {
					t.Errorf("the zone is %q, want %q", got, test.want)
				}
			}
			onMissing(test.all)
			reads := test.given.Prefer != "" || strings.Contains(name, "mechanism") || strings.Contains(name, "fulfilled")
			if mistake := slices.ContainsFunc(notes, func(text string) bool { return strings.Contains(text, "UNDERSTUDY_REGION") }); mistake != reads {
				t.Errorf("noted %q; a note about the invalid region = %v, want %v", notes, mistake, reads)
			}
		})
	}
}
