package debugpage

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/live"
	"github.com/understudy-lb/understudy/internal/printable"
	"github.com/understudy-lb/understudy/internal/shell"
)

const (
	longestText   = 500
	longestName   = 120
	mostNotes     = 20
	rows          = 400             // maximum number of endpoints on a page, for all channels together
	rowsEach      = 20              // default maximum number of endpoints for each locality
	fullChannels  = 50              // maximum number of channels that are shown with their policies
	patience      = time.Second     // how long a policy may be busy before the page says so
	freshFor      = time.Second / 4 // how long a collected page is reused
	branches      = 1000            // maximum number of priorities and localities, for all channels together
	shownBranches = 100
)

type collection struct {
	now      time.Time
	rows     int // how many more endpoints the page may contain
	branches int // how many more priorities and localities the page may contain
	each     int
	began    time.Time // creation of the current channel
}

type query struct {
	channel   uint64 // ID of the only channel to show, or 0 for all
	endpoints int    // maximum number for each locality; 0 means the default
}

// started is the approximate start time of the process.
var started = time.Now()

func collect(q query) *Page {
	c := &collection{now: time.Now(), rows: rows, branches: branches, each: rowsEach}
	if q.endpoints > 0 {
		c.each, c.rows = q.endpoints, q.endpoints*branches
	}
	page := &Page{Time: c.now, Started: started, Channels: []*Channel{}}
	targets := make(map[string]int)
	for _, view := range live.Channels() {
		if live.IsClosed(view.Owner) {
			continue
		}
		targets[line(view.Target, longestName)]++
		if q.channel != 0 && view.ID != q.channel {
			continue
		}
		page.Channels = append(page.Channels, c.channel(view, len(page.Channels) < fullChannels))
	}
	for _, channel := range page.Channels {
		channel.Twin = targets[channel.Target] > 1
	}
	return page
}

func (c *collection) channel(v live.View, full bool) *Channel {
	channel := &Channel{ID: v.ID, Target: line(v.Target, longestName), State: connectivity.Connecting.String()}
	var tree *shell.Tree
	if root, ok := v.Root.(shell.Watchable); ok {
		tree = shell.TreeOf(root)
	} else if last, ok := v.Tree.(*shell.Tree); ok {
		tree, channel.Idle = last, true
		channel.State, channel.Since = connectivity.Idle.String(), &v.Closed
	}
	c.began = v.Made
	if tree != nil {
		policy := c.policy(tree, 1)
		if full {
			channel.Tree = policy
		}
		if !channel.Idle && policy.State != "" {
			channel.State, channel.Since = policy.State, policy.Since
		}
		channel.inUse(policy)
		if tree.Snapshot != nil {
			if d, ok := tree.Details.(shell.Priority); ok {
				channel.InUseSince = timeOf(d.Since)
				channel.rate(policy, d.Since, c.now)
				channel.below(policy)
			}
		}
	}
	for _, s := range v.Sources {
		channel.Sources = append(channel.Sources, Source{
			Name: line(s.Name, longestName), State: s.State, Answered: timeOf(s.Answered),
			Trying:  line(s.Trying, longestText),
			Version: line(s.Version, longestName), Error: line(s.Error, longestText),
			LastError: line(s.LastError, longestText), LastErrorAt: timeOf(s.FailedAt),
			Notes:      lines(s.Notes),
			ErrorSince: timeOf(s.Since), Confirmed: timeOf(s.Confirmed), Endpoints: s.Endpoints, Priorities: s.Priorities,
		})
	}
	if tree == nil {
		channel.withoutTree()
	}
	if full {
		for _, e := range slices.Backward(v.Events) {
			channel.Events = append(channel.Events, Event{e.Time, line(e.Text, longestText)})
		}
	}
	return channel
}

func lines(texts []string) (safe []string) {
	for _, text := range texts[:min(len(texts), mostNotes)] {
		safe = append(safe, line(text, longestText))
	}
	return safe
}

// withoutTree fills in a channel that has no policies yet. Its calls wait until all sources have
// failed.
func (channel *Channel) withoutTree() {
	for _, s := range channel.Sources {
		switch {
		case s.Error == "":
		case s.Name == "":
			channel.Why = append(channel.Why, s.Error)
		default:
			channel.Why = append(channel.Why, s.Name+": "+s.Error)
		}
	}
	if n := len(channel.Why); n > 0 && n == len(channel.Sources) {
		channel.State = connectivity.TransientFailure.String()
	}
}

func (channel *Channel) inUse(root *Policy) {
	if root.Policy != "priority" {
		if root.Error != "" {
			channel.Why = append(channel.Why, root.Error)
		}
		return
	}
	for _, child := range root.Children {
		if child.InUse {
			channel.InUse, channel.WhyInUse = child.title(), child.Why
			if child.Why == child.State {
				channel.WhyInUse = ""
			}
			return
		}
		channel.Why = append(channel.Why, child.title()+": "+child.Why)
	}
	if len(root.Children) == 0 && root.Error != "" {
		channel.Why = append(channel.Why, root.Error)
	}
}

func (channel *Channel) rate(root *Policy, since, now time.Time) {
	for _, child := range root.Children {
		if !child.InUse {
			continue
		}
		channel.Recent = recentOf(child.tally.recent, since, now)
		if channel.Recent.Failing() && channel.WhyInUse == "" {
			channel.WhyInUse = "its calls fail with " + strings.Join(channel.Recent.Codes, ", ")
		}
	}
}

// below adds the problems of the lower priorities to Why, if the priority in use has a problem
// itself.
func (channel *Channel) below(root *Policy) {
	if channel.WhyInUse == "" {
		return
	}
	used := slices.IndexFunc(root.Children, func(child *Child) bool { return child.InUse })
	for _, child := range root.Children[used+1:] {
		if child.State != connectivity.Idle.String() && child.Why != "" && !strings.HasPrefix(child.Why, child.State) {
			channel.Why = append(channel.Why, child.title()+": "+child.Why)
		}
	}
}

func (child *Child) title() string {
	if child.Title != "" {
		return child.Title
	}
	return child.Name
}

func line(text string, most int) string { return printable.Line(text, most) }

func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
