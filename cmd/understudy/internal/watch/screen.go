package watch

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/understudy-lb/understudy/cmd/understudy/internal/table"
)

// The watch writes only these escape sequences and those for colours. It escapes control characters
// in names and errors.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[2J" // switch to the alternate screen and hide the cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	cursorHome  = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

type screen struct {
	out       *os.File
	painter   table.Painter
	restore   func()
	lastFrame string
	summary   []line // lines that remain on the terminal after the watch
}

// openScreen switches to the alternate screen of the terminal. If in is a terminal, it enables raw
// mode, in which Ctrl-C sends no signal, and calls quit when q or Ctrl-C is pressed.
func openScreen(out *os.File, in io.Reader, quit func()) (*screen, error) {
	s := &screen{out: out, painter: table.PainterFor(out), restore: func() {}}
	if keys := table.Terminal(in); keys != nil {
		before, err := term.MakeRaw(int(keys.Fd()))
		if err == nil {
			s.restore = func() { _ = term.Restore(int(keys.Fd()), before) }
			go readKeys(keys, quit)
		}
	}
	if _, err := out.WriteString(enterScreen); err != nil {
		s.restore()
		return nil, err
	}
	return s, nil
}

func readKeys(keys io.Reader, quit func()) {
	const ctrlC, ctrlD, ctrlBackslash = 3, 4, 28
	var key [1]byte
	for {
		if _, err := keys.Read(key[:]); err != nil {
			return
		}
		switch key[0] {
		case 'q', 'Q', ctrlC, ctrlD, ctrlBackslash:
			quit()
			return
		}
	}
}

func (s *screen) size() (columns, rows int) {
	columns, rows, err := term.GetSize(int(s.out.Fd()))
	if err != nil || columns < 1 || rows < 1 {
		return plainColumns, 24
	}
	return columns, rows
}

func (s *screen) report(v *view, _ []Event) error {
	columns, rows := s.size()
	frame := renderFrame(v, columns, rows, s.painter)
	s.summary = v.summary(columns)
	if frame == s.lastFrame {
		return nil
	}
	s.lastFrame = frame
	_, err := s.out.WriteString(frame)
	return err
}

// renderFrame returns the bytes that draw the view on a terminal of the given size.
func renderFrame(v *view, columns, rows int, painter table.Painter) string {
	var b strings.Builder
	b.WriteString(cursorHome)
	lines := v.render(columns, rows-1)
	for len(lines) < rows-1 {
		lines = append(lines, nil)
	}
	keys := newLine(toneFaint, v.now.Local().Format("15:04:05")+", q ends")
	lines = append(lines, line(nil).padTo(columns-keys.cells()))
	lines[len(lines)-1] = append(lines[len(lines)-1], keys...)
	for i, l := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(clearLine + l.paint(columns, painter)) // clear before the text, which may fill the whole line
	}
	b.WriteString(clearBelow)
	return b.String()
}

func (v *view) summary(columns int) (lines []line) {
	const maxChannels = 5
	if v.page == nil {
		return nil
	}
	for i, c := range v.page.Channels {
		if i == maxChannels {
			break
		}
		p := renderer{page: v.page, columns: max(columns, minColumns)}
		p.headline(c)
		lines = append(lines, p.lines...)
	}
	return lines
}

// close restores the terminal and prints the summary.
func (s *screen) close() {
	var b strings.Builder
	b.WriteString(leaveScreen)
	columns, _ := s.size()
	for _, l := range s.summary {
		b.WriteString(l.paint(columns, s.painter) + "\r\n")
	}
	_, _ = s.out.WriteString(b.String())
	s.restore()
}
