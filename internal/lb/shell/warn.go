package shell

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

const maxTargetLength = 250

// Warn logs a warning in gRPC's log, adds it to the channel's history, and passes a record to the
// program's logger. That is called on another goroutine, because it may make a call on this channel.
// policy is the name of the policy in gRPC's log.
func (s *Shell) Warn(policy, message, text string, attrs ...slog.Attr) {
	target := printable.Line(s.Options.Target.String(), maxTargetLength)
	label := target
	if id := s.Options.ChannelzParent; id != nil { // the channelz number distinguishes channels to the same target
		label = fmt.Sprintf("%s [%v]", target, id)
		attrs = append(attrs, slog.String("channel", fmt.Sprint(id)))
	}
	Logger.Warningf("%s: %s: %s", policy, label, text)
	s.Note(text)
	var logger *slog.Logger
	if s.channel != nil {
		logger = s.channel.Logger
	}
	if logger == nil {
		return
	}
	record := slog.NewRecord(time.Now(), slog.LevelWarn, message, 0)
	record.AddAttrs(slog.String("target", target))
	record.AddAttrs(attrs...)
	s.records.Enqueue(func() {
		if handler, ctx := logger.Handler(), context.Background(); handler.Enabled(ctx, record.Level) {
			_ = handler.Handle(ctx, record)
		}
	})
}
