package sim

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/understudy-lb/understudy/internal/shell"
)

// failoverLine checks the log line of a failover: both priorities, the duration and the reason.
func (w *World) failoverLine(m []string) string {
	c, opened := w.opened()
	if m[1] != w.shown || time.Since(opened) == 0 {
		return "" // the line comes from another channel or from one that is closing
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	tos, wrong := c.named(m[5], m[6])
	if wrong != "" {
		return wrong
	}
	if wrong := longAgo(m[8], opened); wrong != "" {
		return wrong
	}
	for _, to := range tos {
		if wrong = w.failover(c, m, to); wrong == "" {
			return ""
		}
	}
	return wrong
}

// failover checks the log line of a failover to the child to. The caller holds the lock.
func (w *World) failover(c *channel, m []string, to string) string {
	what, state, why := m[2], m[7], m[9]
	if is := c.children[to]; is != nil && !is.now() && state != is.state.String() && (state != "TRANSIENT_FAILURE" || is.state != connectivity.Connecting) {
		return fmt.Sprintf("%q is %v", to, is.state)
	}
	if what == "move" && strings.HasSuffix(why, "is not configured any more") {
		return ""
	}
	froms, wrong := c.named(m[3], m[4])
	if wrong != "" {
		return wrong
	}
	if down := number(m[3]) < number(m[5]); down != (what == "failover") {
		return "wrong direction"
	}
	// A failback may go to a priority that is only a last resort.
	if wrong, about := c.children[to].explainsBack(why); what != "failover" && about && strings.HasPrefix(why, "p"+m[5]+" ") {
		return wrong
	}
	for _, from := range froms {
		left := c.children[from]
		if left == nil || left.now() {
			return ""
		}
		if wrong = left.explains(why, w.settings, c.detects); wrong == "" {
			return ""
		}
	}
	return wrong
}

var anotherOne = regexp.MustCompile(`'\d+$`)

// nearness matches the description of a near group in a title.
var nearness = regexp.MustCompile(` \((same (node|zone|region)|elsewhere|(not )?hinted|balanced|other zones)\)$`)

func (w *World) opened() (*channel, time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.channel, w.openedAt
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}

// now reports whether the child's last report is from the current instant. The order of
// simultaneous events is unknown.
func (s *seen) now() bool { return time.Since(s.reportedAt) == 0 }

// named returns the children with this number and title, or the reason why there are none. At the
// time of an update there may be several, because the update may not have reached the policy yet.
// The caller holds the lock.
func (c *channel) named(index, title string) (children []string, wrong string) {
	i := number(index)
	add := func(priorities []string, t tree) {
		if i >= 0 && i < len(priorities) && c.titled(priorities[i], title, t) && !slices.Contains(children, priorities[i]) {
			children = append(children, priorities[i])
		}
	}
	add(c.priorities, c.update)
	if time.Since(c.lastUpdate) == 0 {
		add(c.priorities, c.updateBefore) // a second simultaneous update has not reached the policy yet
		add(c.before, c.updateBefore)
	}
	if len(children) == 0 {
		wrong = fmt.Sprintf("p%d %s is not one of %v", i, title, c.update.priorities)
	}
	return children, wrong
}

// titled reports whether a title belongs to a child. A title names the discovery mechanism, the
// localities, or both. Long titles are cut.
func (c *channel) titled(child, title string, t tree) bool {
	part := child
	if i := strings.LastIndex(child, "/child"); i >= 0 {
		part = anotherOne.ReplaceAllString(child[:i], "")
	}
	if title == child || title == part {
		return true
	}
	if begin, _, cut := strings.Cut(title, "…"); cut {
		return strings.HasPrefix(part+": ", begin) || strings.HasPrefix(begin, part)
	}
	title = strings.TrimPrefix(title, part+": ")
	if strings.HasPrefix(title, "priority ") {
		return true // the mechanism has no localities
	}
	some := strings.HasSuffix(title, " (balanced)") // the title omits localities that get no calls
	title = nearness.ReplaceAllString(title, "")
	localities := strings.Split(title, ", ")
	slices.Sort(localities)
	lacks := func(name string) bool { _, has := t.weights[child][name]; return !has }
	return some && !slices.ContainsFunc(localities, lacks) || slices.Equal(localities, slices.Sorted(maps.Keys(t.weights[child])))
}

// poor reports whether a READY child has reported that its calls should go to another priority, or
// may have fewer READY endpoints than minReady requires.
func (s *seen) poor(with settings) bool {
	return s.tier.Condition != shell.Usable || s.tier.ReadyPart < with.recovery
}

func longAgo(text string, opened time.Time) string {
	d, err := time.ParseDuration(strings.ReplaceAll(text, " ", ""))
	switch {
	case err != nil:
		return err.Error()
	case d > time.Since(opened)+time.Second:
		return fmt.Sprintf("the channel was opened %v ago", time.Since(opened))
	}
	return ""
}

// explainsBack checks the reason of a failback. wrong is "" if the reason is right, and about
// reports whether it concerns this child.
func (s *seen) explainsBack(why string) (wrong string, about bool) {
	takes := strings.Contains(why, " can take calls")
	if takes && s != nil && !s.now() && s.state != connectivity.Ready && s.state != connectivity.Idle {
		wrong = fmt.Sprintf("it is %v", s.state)
	}
	isSo := s != nil && strings.HasSuffix(why, " is "+s.state.String())
	return wrong, takes || isSo || strings.HasSuffix(why, " is given time to connect")
}

// explains returns why the reason of a failover is wrong, or "" if it is right. detects is set if
// the channel has ever detected outliers.
func (s *seen) explains(why string, with settings, detects bool) string {
	_, why, _ = strings.Cut(why, " ")
	switch {
	case strings.Contains(why, "did not connect within"):
		if s.state != connectivity.Connecting || time.Since(s.since) < with.failover {
			return fmt.Sprintf("it has been %v for %v", s.state, time.Since(s.since))
		}
	case strings.Contains(why, "calls to all of its endpoints fail"), strings.Contains(why, "of its weight is READY"):
		if s.state != connectivity.Ready || !s.poor(with) {
			return fmt.Sprintf("it is %v and %v, and %.0f %% of it is READY", s.state, s.tier.Condition, 100*s.tier.ReadyPart)
		}
	case strings.Contains(why, "has lost its connections"):
		// Without fastFailover, calls wait for every priority that is not poor.
		waits := !with.fast && with.minReady == 0 && !detects
		if waits || s.state != connectivity.Connecting && s.state != connectivity.Idle {
			return fmt.Sprintf("it is %v, and fastFailover is %v", s.state, with.fast)
		}
	case strings.HasSuffix(why, "is "+s.state.String()), strings.HasSuffix(why, "is not wanted any more"):
	case s.state != failing:
		return fmt.Sprintf("it is %v", s.state)
	}
	return ""
}

// noneLine checks the log line which says that no priority can take calls.
func (w *World) noneLine(m []string) string {
	c, opened := w.opened()
	if m[1] != w.shown || time.Since(opened) == 0 {
		return ""
	}
	c.mu.Lock()
	for _, name := range c.priorities {
		if is := c.children[name]; is != nil && !is.now() && (is.state == connectivity.Ready || is.state == connectivity.Idle) {
			defer c.mu.Unlock()
			return fmt.Sprintf("%q is %v", name, is.state)
		}
	}
	c.mu.Unlock()
	return w.blames(m[2])
}

// againLine checks the log line which says that a priority can take calls again.
func (w *World) againLine(m []string) string {
	c, opened := w.opened()
	if m[1] != w.shown || time.Since(opened) == 0 {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	children, wrong := c.named(m[2], m[3])
	if wrong == "" && !slices.ContainsFunc(children, func(name string) bool {
		is := c.children[name]
		return is == nil || is.now() || is.state != failing
	}) {
		wrong = fmt.Sprintf("%q is %v", children, failing)
	}
	if wrong == "" {
		wrong = longAgo(m[4], opened)
	}
	return wrong
}
