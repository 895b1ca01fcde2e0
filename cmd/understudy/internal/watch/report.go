package watch

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

// A reporter gets the events since its last call.
type reporter func(*follower, []Event) error

func lineReporter(out io.Writer) reporter {
	return func(_ *follower, events []Event) error {
		var b strings.Builder
		for _, e := range events {
			texts, lines := []string{sanitize(e.Text)}, []string(nil)
			if e.channel != nil {
				texts, lines = sentences(e.channel, e.Time), tree(e.channel, e.Time)
			}
			if e.Target != "" {
				texts[0] = sanitize(e.Target) + ": " + texts[0]
			}
			fmt.Fprintln(&b, e.Time.Local().Format("15:04:05.000"), strings.Join(texts, " "))
			for _, l := range lines {
				fmt.Fprintln(&b, l)
			}
		}
		_, err := io.WriteString(out, b.String())
		return err
	}
}

func jsonReporter(out io.Writer) reporter {
	return func(_ *follower, events []Event) error {
		for _, e := range events {
			encoded, err := json.Marshal(e)
			if err != nil {
				return err
			}
			if _, err := out.Write(append(printable.JSON(encoded), '\n')); err != nil {
				return err
			}
		}
		return nil
	}
}

// These are the only escape sequences we write. We don't know how wide characters are, so we turn
// off wrapping.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l" // switch to the alternate screen and hide the cursor
	leaveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	clearLine   = "\x1b[K"
)

// openScreen switches to the terminal's alternate screen. The caller must call restore, which goes
// back and prints the last state.
func openScreen(out *os.File) (report reporter, restore func()) {
	fmt.Fprint(out, enterScreen)
	shown := ""
	report = func(f *follower, _ []Event) error {
		columns, rows, err := term.GetSize(int(out.Fd()))
		if err != nil || columns < 1 || rows < 2 {
			columns, rows = 80, 24
		}
		shown = f.screen(time.Now(), columns, rows-1)
		_, err = out.WriteString("\x1b[H" + clearLine + strings.ReplaceAll(shown, "\n", "\r\n"+clearLine) + "\r\n\x1b[J")
		return err
	}
	return report, func() { fmt.Fprint(out, leaveScreen, shown, "\n") }
}
