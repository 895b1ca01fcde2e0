package page

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/lb/live"
	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

const (
	maxTextLength      = 500
	maxNameLength      = 120
	maxNotes           = 20
	maxEndpoints       = 400             // across all channels
	defaultEndpoints   = 20              // shown per locality
	maxFullChannels    = 50              // beyond that, we leave out the policies
	busyAfter          = time.Second     // not worth showing before that
	pageLifetime       = time.Second / 4 // shared by all viewers
	maxBranches        = 1000            // priorities and localities, across all channels
	maxSiblingBranches = 100             // priorities, or localities of one priority
)

type collection struct {
	now         time.Time
	rows        int           // how many more endpoints fit on the page
	branches    int           // how many more priorities and localities fit
	perLocality int           // most endpoints to show per locality
	created     time.Time     // when the current channel was created
	backoff     time.Duration // current channel's backoff, or 0 if unknown
}

type query struct {
	channel   uint64 // ID, or 0 for all channels
	endpoints int    // per locality, or 0 for the default
}

var processStart = time.Now() // not exact, but close enough

func collect(q query) *Page {
	c := &collection{now: time.Now(), rows: maxEndpoints, branches: maxBranches, perLocality: defaultEndpoints}
	if q.endpoints > 0 {
		c.perLocality, c.rows = q.endpoints, q.endpoints*maxBranches
	}
	page := &Page{Time: c.now, Started: processStart, Channels: []*Channel{}}
	targets := make(map[string]int)
	for _, view := range live.Channels() {
		if live.IsClosed(view.Owner) {
			continue
		}
		targets[line(view.Target, maxNameLength)]++
		if q.channel != 0 && view.ID != q.channel {
			continue
		}
		page.Channels = append(page.Channels, c.channel(view, len(page.Channels) < maxFullChannels))
	}
	for _, channel := range page.Channels {
		channel.Twin = targets[channel.Target] > 1
	}
	return page
}

func (c *collection) channel(v live.View, full bool) *Channel {
	channel := &Channel{ID: v.ID, Target: line(v.Target, maxNameLength), State: connectivity.Connecting.String()}
	var tree *shell.Tree
	if root, ok := v.Root.(shell.Watchable); ok {
		tree = shell.TreeOf(root)
	} else if last, ok := v.Tree.(*shell.Tree); ok {
		tree, channel.Idle = last, true
		channel.State, channel.Since = connectivity.Idle.String(), &v.Closed
	}
	c.created, c.backoff = v.Made, 0
	if tree != nil {
		policy := c.policy(tree, 1)
		if full {
			channel.Tree = policy
		}
		if !channel.Idle && policy.State != "" {
			channel.State, channel.Since = policy.State, policy.Since
		}
		channel.setInUse(policy)
		if tree.Snapshot != nil {
			if d, ok := tree.Details.(shell.Priority); ok {
				channel.describeInUse(policy, d, c.now)
			}
		}
	}
	for _, s := range v.Sources {
		channel.Sources = append(channel.Sources, Source{
			Name: line(s.Name, maxNameLength), State: s.State, Answered: timeOf(s.Answered),
			Trying:  line(s.Trying, maxTextLength),
			Version: line(s.Version, maxNameLength), Error: line(s.Error, maxTextLength),
			LastError: line(s.LastError, maxTextLength), LastErrorAt: timeOf(s.FailedAt),
			Notes:      lines(s.Notes),
			ErrorSince: timeOf(s.Since), Confirmed: timeOf(s.Confirmed), Endpoints: s.Endpoints, Priorities: s.Priorities,
		})
	}
	if tree == nil {
		channel.setStateWithoutTree()
	}
	if full {
		for _, e := range slices.Backward(v.Events) {
			channel.Events = append(channel.Events, Event{e.Time, line(e.Text, maxTextLength)})
		}
	}
	return channel
}

func lines(texts []string) (safe []string) {
	for _, text := range texts[:min(len(texts), maxNotes)] {
		safe = append(safe, line(text, maxTextLength))
	}
	return safe
}

func (channel *Channel) setStateWithoutTree() {
	for _, s := range channel.Sources {
		switch {
		case s.Error == "":
		case len(channel.Sources) == 1:
			channel.Why = append(channel.Why, s.Error)
		default:
			channel.Why = append(channel.Why, s.Name+": "+s.Error)
		}
	}
	if n := len(channel.Why); n > 0 && n == len(channel.Sources) {
		channel.State = connectivity.TransientFailure.String()
	}
}

func (channel *Channel) setInUse(root *Policy) {
	if root.Policy != "priority" {
		if root.Error != "" {
			channel.Why = append(channel.Why, root.Error)
		}
		return
	}
	if !channel.Idle {
		channel.Refused = root.refused
	}
	for _, child := range root.Children {
		switch {
		case channel.InUse != "" && child.InUse:
			channel.Others = append(channel.Others, child.title())
		case channel.InUse != "":
		case !child.InUse:
			channel.Why = append(channel.Why, child.title()+": "+child.Why)
		default:
			channel.InUse = child.title()
			if child.Cause != "" {
				channel.Cause, channel.Takes = child.Cause, child.Share
			} else if child.Why != child.State {
				channel.WhyInUse = child.Why
			}
		}
	}
	if len(root.Children) == 0 && root.Error != "" {
		channel.Why = append(channel.Why, root.Error)
	}
}

func (channel *Channel) describeInUse(root *Policy, d shell.Priority, now time.Time) {
	// If there's something wrong with the priority in use, some calls could go to lower ones
	// instead, so Why explains what's wrong with those too.
	since, used := d.Since, slices.IndexFunc(root.Children, func(child *Child) bool { return child.InUse })
	if used >= 0 && root.Children[used].Name != line(d.InUse, maxNameLength) {
		since = time.Time{} // the highest READY priority only gets probes
	}
	channel.InUseSince = timeOf(since)
	if used < 0 {
		return
	}
	channel.Recent = recentOf(root.Children[used].counts.recent, since, now)
	if channel.Recent.Failing() && channel.WhyInUse == "" {
		channel.WhyInUse = "its calls fail with " + strings.Join(channel.Recent.Codes, ", ")
	}
	if channel.WhyInUse == "" && channel.Refused == 0 {
		return
	}
	for _, child := range root.Children[used+1:] {
		if !child.InUse && child.State != connectivity.Idle.String() && child.Why != "" && !strings.HasPrefix(child.Why, child.State) {
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

func line(text string, limit int) string { return printable.Line(text, limit) }

func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
