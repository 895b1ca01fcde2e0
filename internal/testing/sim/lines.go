package sim

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/grpclog"

	"github.com/understudy-lb/understudy/internal/printable"
)

// living is the world that receives the product's log. Only one world runs at a time.
var living atomic.Pointer[World]

// Listen sends the product's log to the current world. Call it once, before gRPC is used.
func Listen() { grpclog.SetLoggerV2(logs{grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard)}) }

type logs struct{ grpclog.LoggerV2 }

// line is a pattern of log lines, and a function that checks whether such a line is true.
type line struct {
	form  *regexp.Regexp
	check func(w *World, m []string) string
}

var lines = []line{
	{regexp.MustCompile(`^priority: (\S+)(?: \[Channel #\d+\])?: (failover|failback|move) from p(\d+) (.*) to p(\d+) (.*), which is (\w+), after (.*?): (.*)$`), (*World).failoverLine},
	{regexp.MustCompile(`^priority: (\S+)(?: \[Channel #\d+\])?: no priority can take calls: (.*)$`), (*World).noneLine},
	{regexp.MustCompile(`^priority: (\S+)(?: \[Channel #\d+\])?: p(\d+) (.*) takes calls again, after (.*) without any$`), (*World).againLine},
	{regexp.MustCompile(`^\w+: (\S+): (\d+) endpoints? in (\d+) priorit(?:y|ies)$`), (*World).updateLine},
	{regexp.MustCompile(`^failover: sim:///p(\d): its resolver answered without addresses(; .*)?$`), (*World).emptyLine},
	{regexp.MustCompile(`^failover: dns:///h(\d):50051: its resolver answered without addresses(; .*)?$`), (*World).emptyHostLine},
	{regexp.MustCompile(`^(.*); the endpoints that were confirmed (\S+) ago are used$`), (*World).keptLine},
	{regexp.MustCompile(`^(.*); the endpoints from before stay in use$`), (*World).sourceLine},
	{regexp.MustCompile(`^\w+: (?:.*: )?no answer yet: waiting for .*$`), (*World).sourceLine},
	{regexp.MustCompile(`^eds: stream to dns:///10\.9\.0\.\d:18000 (failed|ended): (.*)$`), (*World).sourceLine},
	{regexp.MustCompile(`^eds: stream to dns:///10\.9\.0\.\d:18000: renewed, to forget clusters that nobody watches$`), (*World).renewedLine},
	{regexp.MustCompile(`^eds: stream to dns:///10\.9\.0\.\d:18000 brought nothing for (\S+) while endpoints failed: opening a second one$`), (*World).quietLine},
	{regexp.MustCompile(`^eds: stream to dns:///10\.9\.0\.\d:18000: it brought nothing while endpoints failed, and another stream was answered$`), (*World).quietLine},
	{regexp.MustCompile(`^eds: second stream to dns:///10\.9\.0\.\d:18000: (.*); the first stays$`), (*World).sourceLine},
	{regexp.MustCompile(`^eds: rejected version "(\d+)" from dns:///10\.9\.0\.\d:18000: (.*)$`), (*World).sourceLine},
	{regexp.MustCompile(`^eds: dns:///10\.9\.0\.\d:18000 did not send (endpoints of )?cluster "(\w+)" within 15s$`), (*World).sourceLine},
	{regexp.MustCompile(`: zoneCallers names zones that the source does not, which count as without endpoints: .*$`), (*World).zonesLine},
	{regexp.MustCompile(`: prefer=(\w+) has no effect(?:: the source says no (.*) of any endpoint| on endpoints without localities, such as those of DNS)$`), (*World).placelessLine},
	{regexp.MustCompile(`: outlier_detection of the cluster has no effect with pickFirst$`), (*World).uselessLine},
	{regexp.MustCompile(`^(eds: cluster "sim\d"|file: /\S+): .*has no effect.*$`), (*World).noteLine},
	{regexp.MustCompile(`^(eds: (sim\w*: eds: )?no endpoints of cluster|file: open|file: /|failover: sim:///p\d: )(.*)$`), (*World).sourceLine},
	{regexp.MustCompile(`^eds: cluster "sim\w*": (back to )?management server (.*)$`), (*World).sourceLine},
	{regexp.MustCompile(`^srv: _grpc\._tcp\.sim: the records say that there is no such service$`), (*World).goneLine},
	{regexp.MustCompile(`^\w+: .*the SRV records of _grpc\._tcp\.sim name no server: no call can be made$`), (*World).goneLine},
	{regexp.MustCompile(`^\w+: .*(?:cluster "\S+" has no localities|Service \S+ has no pods that serve|no endpoint can take calls: .*|there are no endpoints): no call can be made$`), (*World).emptyClusterLine},
	{regexp.MustCompile(`^eds: (.*)no cluster "\w+" from (.*)$`), (*World).sourceLine},
	// All channels have the same options, even those that only one kind of source uses.
	{regexp.MustCompile(`^\w+: an option of package \w+, which the program gives in Sources, has no effect: `), func(*World, []string) string { return "" }},
	{regexp.MustCompile(`^\w+: (?:\S+: )*(Service \S+ has no EndpointSlice(?:; Service \S+ has no EndpointSlice)*)$`), (*World).sliceLine},
	{regexp.MustCompile(`^(srv|failover|k8s|kubernetes): (.*)$`), (*World).sourceLine},
	{regexp.MustCompile(`^priority: (?:child "(.*)"|p(\d+) (.*)) refused its update and (?:stays \w+|counts as failed): .*$`), (*World).rejectedLine},
	{regexp.MustCompile(`^outlier_detection: endpoint (\S+) is ejected by (consecutive_failures|failure_percentage|success_rate)$`), (*World).ejectedLine},
	{regexp.MustCompile(`^outlier_detection: (\S+): (?:priority .*: )?(not all of its endpoints are ejected any more|calls to all of its endpoints fail|a few calls show whether its endpoints are well again)(?: with [A-Z_, ]+)?$`), (*World).emptiedLine},
	{regexp.MustCompile(`^pick_first: calls fail: (.*)$`), func(w *World, m []string) string { return w.blames(m[1]) }},
}

// longestTarget is the approximate length at which the priority policy cuts a target in its log
// lines.
const longestTarget = 250

func (w *World) said(level, text string) {
	w.Log.Event("%s %s", level, text)
	w.markLine(text)
	if strings.Contains(text, "\n") {
		w.Log.Break(ruleNames, "a line of the log has several lines: %q", text)
	}
	text = strings.Replace(text, printable.Line(w.shown, longestTarget), w.shown, 1)
	for _, l := range lines {
		if m := l.form.FindStringSubmatch(text); m != nil {
			if wrong := l.check(w, m); wrong != "" {
				w.Log.Break(ruleNames, "%q: %s", text, wrong)
			}
			return
		}
	}
	w.Log.Break(ruleNames, "%q: unknown log line", text)
}

func (w *World) updateLine(m []string) string {
	if m[1] != w.target {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	// The product logs this line before the update, which is compared with it.
	w.announced = m[2] + " in " + m[3]
	return ""
}

// settling is how long a file may seem to be half written, and how long a source may be silent.
const settling = 5 * time.Second

func (w *World) keptLine(m []string) string {
	age, err := time.ParseDuration(m[2])
	if err != nil {
		return err.Error()
	}
	w.mu.Lock()
	last, changed := w.lastReceived, w.changedAt
	w.mu.Unlock()
	if strings.Contains(m[1], "nothing was heard") && time.Since(changed) < settling {
		return "" // a new channel may take the file for incomplete
	}
	if n := part[*names](w); n != nil && n.everEmpty() {
		return "" // a name without addresses does not confirm the stored answer
	}
	// The age of the answer is unknown if no channel got an update while all sources worked, or if
	// the channel opened while another one closed.
	if last.IsZero() {
		return w.sourceLine(m)
	}
	slack := w.source.Lag() + time.Second
	if part[*kube](w) != nil {
		slack += longestWatch // a watch confirms the list when it begins and with each bookmark
	}
	if _, opened := w.opened(); time.Since(opened) > 0 && age > time.Since(last)+slack {
		return fmt.Sprintf("the last update was %v ago", time.Since(last))
	}
	return w.sourceLine(m)
}

// sourceLine checks a log line about a fault of the source.
func (w *World) sourceLine([]string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.faulty == "" && time.Since(w.wellSince) > w.source.Recovery() {
		return fmt.Sprintf("the source has worked for %v", time.Since(w.wellSince))
	}
	return ""
}

// renewedLine checks the log line about too many stored answers, which temporary channels cause.
func (w *World) renewedLine([]string) string {
	if s := part[*edsSource](w); s.passers <= 100 {
		return fmt.Sprintf("only %d other channels were opened", s.passers)
	}
	return ""
}

// quietLine checks the log line which says that a stream was silent for 30 s while endpoints
// failed.
func (w *World) quietLine(m []string) string {
	if len(m) > 1 {
		if quiet, err := time.ParseDuration(m[1]); err != nil || quiet < 30*time.Second {
			return "a stream that was quiet for less than 30 s does not justify a second one"
		}
	}
	if part[*edsSource](w) == nil {
		return "no source has a stream"
	}
	return ""
}

// emptyLine checks the log line which says that a discovery mechanism has no addresses.
func (w *World) emptyLine(m []string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range append(w.history[max(0, len(w.history)-2):], w.truth) { // two updates may be in flight
		if i := int(m[1][0] - '0'); i >= len(t) || len(t[i].Serving()) == 0 {
			return ""
		}
	}
	return "it has addresses: " + w.truth.String()
}

// emptyHostLine checks the log line which says that a host has no addresses. The line is true if the
// lookup fails, or if the world began with an empty priority.
func (w *World) emptyHostLine(m []string) string {
	if w.sourceLine(m) == "" {
		return ""
	}
	return w.emptyLine(m)
}

func (w *World) goneLine([]string) string {
	s := part[*records](w)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.Sees(s.truth)) > 0 && len(s.Sees(s.before)) > 0 {
		return "there are records"
	}
	return ""
}

// emptyClusterLine checks the log line about a discovery mechanism without usable endpoints.
func (w *World) emptyClusterLine([]string) string {
	m, _ := w.source.(*mixed)
	if k, is := w.source.(*kube); is && k.deletes() || m != nil && m.deletes() {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.history[max(0, len(w.history)-2):]
	if w.faulty != "" {
		before = w.history // the stored answer may be older
	}
	for _, t := range append(slices.Clone(before), w.truth) {
		drained := slices.ContainsFunc(t, func(tier Tier) bool { return len(tier.Serving()) == 0 }) // a priority may be a cluster of its own, so one without endpoints is enough
		if drained || m == nil && len(w.source.Sees(t).serving()) == 0 || m != nil && m.lacks(t) {
			return ""
		}
	}
	return "endpoints can take calls: " + w.truth.String()
}

func (w *World) rejectedLine(m []string) string {
	c := w.channelNow()
	c.mu.Lock()
	defer c.mu.Unlock()
	children := []string{m[1]}
	if m[2] != "" {
		children, _ = c.named(m[2], m[3])
	}
	wrong := ""
	for _, name := range children {
		i := slices.Index(c.update.priorities, name)
		if i < 0 || i >= len(c.truth) || len(c.truth[i].Serving()) == 0 || c.truth[i].failsInPart() {
			return ""
		}
		wrong = fmt.Sprintf("%q has endpoints: %v", name, c.truth[i])
	}
	return wrong
}

// failsInPart reports whether a priority may refuse its update although it has endpoints. A
// locality without endpoints refuses its update, and weighted_target returns that error if the
// endpoints of all other localities are ejected.
func (t Tier) failsInPart() bool {
	return t.detection().ejects() && slices.ContainsFunc(t, func(l Locality) bool { return len(Tier{l}.Serving()) == 0 })
}

var anOldError = regexp.MustCompile(`[;,] (its )?last error: [^;]*`)

// refusedAddress matches the error of a refused resource. Its addresses do not exist.
var refusedAddress = regexp.MustCompile(`address 10\.0\.\d+\.\d+:\d+ is that of `)

var anAddress = regexp.MustCompile(`\b10\.0\.\d+\.\d+:\d+\b`)

// blames returns why a connection error is wrong, or "" if it is right. The channel must have known
// the endpoints in it, and they must have been unreachable recently.
func (w *World) blames(text string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	// The error of a priority that did not connect in time quotes the last error of a connection,
	// which may be old.
	text = refusedAddress.ReplaceAllString(anOldError.ReplaceAllString(text, ""), "")
	for _, address := range anAddress.FindAllString(text, -1) {
		c := w.conditions[address]
		switch {
		case c == nil || !w.ever[address]:
			return address + " was never one of the channel's"
		case c.connects() && time.Since(c.since) > w.settings.patience(1):
			return address + " has been reachable for " + strconv.Itoa(int(time.Since(c.since).Seconds())) + " s"
		}
	}
	return ""
}

func (logs) InfoDepth(_ int, args ...any) { hear("info:", args) }

func (logs) WarningDepth(_ int, args ...any) { hear("warning:", args) }

func (logs) ErrorDepth(_ int, args ...any) { hear("error:", args) }

func (logs) FatalDepth(_ int, args ...any) { panic(fmt.Sprint(args...)) }

// hear passes on the product's log lines and drops gRPC's own.
func hear(level string, args []any) {
	w := living.Load()
	if w == nil || len(args) < 2 || args[0] != "[understudy]" {
		return
	}
	w.said(level, strings.TrimSuffix(fmt.Sprint(args[1:]...), "\n"))
}
