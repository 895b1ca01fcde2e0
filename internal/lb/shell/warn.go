package shell

import (
	"fmt"
	"log/slog"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

const maxTargetLength = 250

// Warn writes a warning to gRPC's log, adds it to the channel's history, and passes a record to the
// program's logger. policy is what gRPC's log calls the policy.
func (s *Shell) Warn(policy, message, text string, attrs ...slog.Attr) {
	target := printable.Line(s.Options.Target.String(), maxTargetLength)
	label := target
	if id := s.Options.ChannelzParent; id != nil { // channels to the same target have different numbers
		label = fmt.Sprintf("%s [%v]", target, id)
		attrs = append(attrs, slog.String("channel", fmt.Sprint(id)))
	}
	Logger.Warningf("%s: %s: %s", policy, label, text)
	s.Note(text)
	if s.channel != nil {
		s.records.Write(s.channel.Logger, message, append([]slog.Attr{slog.String("target", target)}, attrs...)...)
	}
}
