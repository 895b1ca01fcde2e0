package shell

import (
	"fmt"
	"log/slog"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

const maxTargetLength = 250

// Warn logs a warning in gRPC's log, adds it to the channel's history, and passes a record to the
// program's logger. policy is the name of the policy in gRPC's log.
func (s *Shell) Warn(policy, message, text string, attrs ...slog.Attr) {
	target := printable.Line(s.Options.Target.String(), maxTargetLength)
	label := target
	if id := s.Options.ChannelzParent; id != nil { // the channelz number distinguishes channels to the same target
		label = fmt.Sprintf("%s [%v]", target, id)
		attrs = append(attrs, slog.String("channel", fmt.Sprint(id)))
	}
	Logger.Warningf("%s: %s: %s", policy, label, text)
	s.Note(text)
	if s.channel != nil {
		s.records.Write(s.channel.Logger, message, append([]slog.Attr{slog.String("target", target)}, attrs...)...)
	}
}
