package watch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/understudy-lb/understudy/internal/page"
)

var testTime = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func timeBefore(d time.Duration) *time.Time {
	past := testTime.Add(-d)
	return &past
}

// endpoints returns a weighted_round_robin policy with n endpoints, of which the first failed ones
// are in TRANSIENT_FAILURE.
func endpoints(network string, n, failed int, share float64) *page.Policy {
	p := &page.Policy{Policy: "weighted_round_robin", State: "READY"}
	for i := range n {
		child := &page.Child{Name: fmt.Sprintf("%s.%d:443", network, i+1), State: "READY", Since: timeBefore(5 * time.Minute), Calls: &page.Calls{Started: 1200, Failed: 3, InFlight: 2}}
		if i < failed {
			child.State, child.Error, child.Since = "TRANSIENT_FAILURE", "connection refused by "+child.Name, timeBefore(12*time.Second)
		} else {
			child.Share = share / float64(n-failed)
		}
		if i == 20 {
			p.Folded = map[string]int{"READY": n - 20}
			break
		}
		p.Children = append(p.Children, child)
	}
	return p
}

func failoverPage() *page.Page {
	locality := func(name string, below *page.Policy, state string, share float64) *page.Child {
		return &page.Child{Name: name, State: state, Weight: 1, Share: share, Since: timeBefore(12 * time.Second), Below: below}
	}
	down := &page.Policy{Policy: "weighted_target", Children: []*page.Child{
		locality("us-east/a", endpoints("10.0.0", 2, 2, 0), "TRANSIENT_FAILURE", 0),
		locality("us-east/b", endpoints("10.0.1", 1, 1, 0), "TRANSIENT_FAILURE", 0),
	}}
	used := &page.Policy{Policy: "weighted_target", Children: []*page.Child{locality("eu-west", endpoints("10.1.0", 4, 0, 1), "READY", 1)}}
	used.Children[0].Below.Children[3].Ejected = "ejected"
	tree := &page.Policy{Policy: "priority", State: "READY", Notes: []string{"drops 5 % as throttle"}, Children: []*page.Child{
		{Name: "a", Title: "p0 us-east/a, us-east/b", State: "TRANSIENT_FAILURE", Since: timeBefore(12 * time.Second), Why: "connection refused by 10.0.1.1:443", Below: down},
		{Name: "b", Title: "p1 eu-west", State: "READY", Since: timeBefore(11 * time.Second), InUse: true, Share: 1, Below: used},
		{Name: "p2 ap-south", State: "IDLE", Why: "not needed yet, so not connected"},
	}}
	return &page.Page{Time: testTime, Channels: []*page.Channel{{
		ID: 1, Target: "file:///etc/shop.yaml", State: "READY", Since: timeBefore(11 * time.Second), InUse: "p1 eu-west", InUseSince: timeBefore(11 * time.Second),
		Why:     []string{"p0 us-east/a, us-east/b: connection refused by 10.0.1.1:443"},
		Sources: []page.Source{{State: "answered", Version: "1f3a9c20", Answered: timeBefore(time.Hour), Endpoints: 8, Priorities: 3}}, Tree: tree,
		Events: []page.Event{
			{Time: *timeBefore(11 * time.Second), Text: "p1 eu-west is READY"},
			{Time: *timeBefore(12 * time.Second), Text: "failover from p0 us-east/a, us-east/b to p1 eu-west, which is CONNECTING, after 1 ms: p0 us-east/a, us-east/b: connection refused by 10.0.1.1:443 (3 endpoints)"},
			{Time: *timeBefore(time.Hour), Text: "update: 8 endpoints in 3 priorities"},
		},
	}}}
}

// The golden files contain the screen of terminals of different sizes, with many endpoints, and
// without a page.
func TestScreen(t *testing.T) {
	many := failoverPage()
	many.Channels[0].Tree.Children[1].Below.Children[0].Below = endpoints("10.1.0", 1000, 1, 1)
	stale := failoverPage()
	s := &stale.Channels[0].Sources[0]
	s.Error, s.ErrorSince, s.Confirmed = "management server dns:///xds.example.com:18000 cannot be reached: connection refused by 10.0.0.9:18000", timeBefore(10*time.Minute), timeBefore(10*time.Minute+time.Second)
	refused := errors.New("connection refused by 10.0.0.9:443")
	for name, test := range map[string]struct {
		follower      follower
		columns, rows int
	}{
		"screen.txt": {follower{page: failoverPage(), calls: new(prober), lastCounts: CallCounts{Sent: 120, Answered: 115, Failed: 4, LastError: "DEADLINE_EXCEEDED: context deadline exceeded"}}, 80, 40},
		"low.txt":    {follower{page: failoverPage()}, 40, 8},
		"many.txt":   {follower{page: many}, 120, 40},
		"stale.txt":  {follower{page: stale}, 80, 10},
		"lost.txt":   {follower{page: failoverPage(), url: "https://shop.example.com/debug/understudy/", err: refused, errSince: *timeBefore(3 * time.Second)}, 80, 10},
		"never.txt":  {follower{url: "http://127.0.0.1:1/", err: refused, errSince: *timeBefore(3 * time.Second)}, 80, 40},
	} {
		shown := test.follower.screen(testTime, test.columns, test.rows) + "\n"
		if n := strings.Count(shown, "\n"); n > test.rows {
			t.Errorf("%s: %d lines, want at most %d", name, n, test.rows)
		}
		golden(t, name, []byte(shown))
	}
}

func TestLines(t *testing.T) {
	var plain, encoded bytes.Buffer
	f := follower{}
	observe := func(page *page.Page, err error) {
		t.Helper()
		now := testTime
		if page != nil {
			now = page.Time
		}
		events := f.observe(now, page, err)
		if err := lineReporter(&plain)(&f, events); err != nil {
			t.Fatal(err)
		}
		if err := jsonReporter(&encoded)(&f, events); err != nil {
			t.Fatal(err)
		}
	}
	observe(failoverPage(), nil)
	later := failoverPage()
	later.Time = testTime.Add(time.Second)
	observe(later, nil)
	back := failoverPage()
	c := back.Channels[0]
	c.InUse, c.Why = "p0 us-east/a, us-east/b", nil
	c.Tree.Children = c.Tree.Children[1:2]
	c.Events = append([]page.Event{{Time: testTime.Add(time.Minute), Text: "failback from p1 eu-west to p0 us-east/a, us-east/b"}}, c.Events...)
	observe(back, nil)
	stale := failoverPage()
	c = stale.Channels[0]
	*c, stale.Time = *back.Channels[0], testTime.Add(90*time.Second)
	c.Sources = []page.Source{{State: "answered", Version: "7", Answered: timeBefore(time.Hour), Error: "shop.yaml: no such file or directory", ErrorSince: &testTime, Confirmed: &testTime, Endpoints: 8, Priorities: 3}}
	observe(stale, nil)
	observe(stale, nil)
	observe(nil, errors.New("connection refused by 127.0.0.1:80"))
	observe(nil, errors.New("connection refused by 127.0.0.1:80"))
	restarted := failoverPage()
	restarted.Started, restarted.Channels[0].Tree = testTime, nil
	observe(restarted, nil)
	observe(&page.Page{Time: testTime, Started: testTime}, nil)
	golden(t, "lines.txt", plain.Bytes())
	golden(t, "events.json", encoded.Bytes())
}

// A priority becomes full, and then calls are refused. The lines and the JSON must say so.
func TestLoadIsReported(t *testing.T) {
	f := follower{}
	for _, test := range []struct {
		change     func(*page.Channel)
		text, load string
	}{
		{func(*page.Channel) {}, "Calls go to p1 eu-west.", ""},
		{func(c *page.Channel) { c.Cause, c.Takes, c.Others = "full", 0.49, []string{"p2 ap-south"} }, "p1 eu-west takes 49 % of the calls: full. The others go to p2 ap-south.", "full"},
		{func(c *page.Channel) { c.Cause, c.Takes, c.Refused = "slow", 0.7, 0.12 }, "Every priority is full: 12 % of the calls are refused.", "shed"},
	} {
		p := failoverPage()
		test.change(p.Channels[0])
		events := f.observe(testTime, p, nil)
		last := events[len(events)-1]
		var plain bytes.Buffer
		if err := lineReporter(&plain)(&f, events); err != nil {
			t.Fatal(err)
		}
		if last.Kind != "status" || last.Text != test.text || last.Load != test.load || !strings.Contains(plain.String(), test.text) {
			t.Errorf("reported is %q with the load %q, want %q and %q:\n%s", last.Text, last.Load, test.text, test.load, &plain)
		}
		if again := f.observe(testTime, p, nil); len(again) > 0 {
			t.Errorf("reported again is %+v", again)
		}
	}
}

func TestDocumentListsEveryField(t *testing.T) {
	document, err := os.ReadFile("../../../../docs/watch.md")
	if err != nil {
		t.Fatal(err)
	}
	if view, err := os.ReadFile("testdata/screen.txt"); err != nil || !strings.Contains(string(document), "```\n"+string(view)+"```\n") {
		t.Errorf("docs/watch.md does not show testdata/screen.txt (%v)", err)
	}
	encoded, err := json.Marshal(Event{Channel: 1, Target: "t", State: "s", InUse: "p", Load: "l", Why: []string{"w"}, Sources: []page.Source{{}}, Tree: &page.Policy{}, Calls: &CallCounts{NotSent: 1, LastError: "e"}})
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(encoded, &fields); err != nil {
		t.Fatal(err)
	}
	for name := range fields["calls"].(map[string]any) {
		fields["calls."+name] = nil
	}
	for name := range fields {
		if !strings.Contains(string(document), "`"+name+"`") {
			t.Errorf("docs/watch.md does not describe %s", name)
		}
	}
	for _, kind := range []string{"status", "event", "gone", "lost", "back", "restarted", "calls"} {
		if !strings.Contains(string(document), "`"+kind+"`") {
			t.Errorf("docs/watch.md does not describe the kind %s", kind)
		}
	}
}
