package clusterfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"
)

// syntaxError returns err, the parser's for data, with a place.
func syntaxError(path string, data []byte, err error) error {
	problems := &Error{Path: path}
	if e, ok := errors.AsType[*json.SyntaxError](jsonError(data)); ok {
		line, column := place(data[:max(e.Offset-1, 0)])
		problems.add(line, column, "syntax error: %v", e)
		return problems.err()
	}
	line, column, text := yamlPlace(data, err.Error())
	problems.add(line, column, "syntax error: %s", text)
	return problems.err()
}

// jsonError returns what is wrong with data as JSON, nil if data is not meant to be.
func jsonError(data []byte) error {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return nil
	}
	var value any
	return json.Unmarshal(data, &value)
}

// lineNumber matches the place in a message of the YAML parser, where it has one.
var lineNumber = regexp.MustCompile(`^line (\d+): `)

// ofParser holds the messages of the parser, which joins tokens. All others come from
// the scanner, which makes tokens of characters, and are about one character.
var ofParser = map[string]bool{
	"did not find expected key":              true,
	"did not find expected node content":     true,
	"did not find expected '-' indicator":    true,
	"did not find expected ',' or ']'":       true,
	"did not find expected ',' or '}'":       true,
	"did not find expected <document start>": true,
}

// yamlPlace returns the place of the parser's message, and the message without it.
//
// The scanner's messages have the line, except on line 1. The parser's have the number
// of lines before the block or list around the mistake, which can be far up. The place
// is then where the parser stopped to read.
func yamlPlace(data []byte, message string) (line, column int, text string) {
	said, message := splitLine(message)
	if message == "found unexpected end of stream" {
		said = max(said, 1)
	}
	data, skipped := near(data, said, message)
	said -= skipped
	line, column, text = placeIn(data, said, message, skipped)
	return line + skipped, column, text
}

// placeIn is yamlPlace for what is left of the data without so many lines before it.
func placeIn(data []byte, said int, message string, skipped int) (line, column int, text string) {
	if message == "found unexpected end of stream" {
		return said, openingQuote(data, said, message), message
	}
	read := readUntilError(data)
	switch {
	case ofParser[message]:
		line, _ = place(bytes.TrimRight(read, " \t\r\n"))
		if said+1 < line {
			message += " (in what begins on line " + strconv.Itoa(skipped+said+1) + ")"
		}
		return line, firstColumn(data, line), message
	case strings.HasPrefix(message, "unknown anchor '"):
		name := strings.Split(message, "'")[1]
		line, column = place(read[:max(bytes.LastIndex(read, []byte("*"+name)), 0)])
		return line, column, message
	}
	line, column = place(data[:offender(data, len(read), message)])
	if said <= 0 || said == line {
		return line, column, message
	}
	return said, firstColumn(data, said), message
}

// near returns the data from a line on that is not far before the one that is said, and how
// many lines it leaves out, where the parser says the same of it: places are found by parsing
// again and again.
func near(data []byte, said int, message string) (rest []byte, skipped int) {
	for lines := 8; lines < said && !ofParser[message]; lines *= 8 {
		skipped, rest = leastIndented(data, said-lines, said)
		if line, text := firstError(rest); text == message && max(line, 1)+skipped == said {
			return rest, skipped
		}
	}
	return data, 0
}

// leastIndented returns the data from that line on that is indented least, of those from first
// up to last, and the number of lines before it.
func leastIndented(data []byte, first, last int) (skipped int, rest []byte) {
	at, least := offset(data, first), -1
	for line := first; line <= last; line++ {
		if column := firstColumn(data[at:], 1); least < 0 || column < least {
			least, skipped, rest = column, line-1, data[at:]
		}
		at += bytes.IndexByte(data[at:], '\n') + 1
	}
	return skipped, rest
}

// splitLine splits a message of the YAML parser into the line that it names, 0 if none,
// and the rest.
func splitLine(message string) (line int, rest string) {
	message = strings.TrimPrefix(message, "yaml: ")
	if m := lineNumber.FindStringSubmatch(message); m != nil {
		line, _ = strconv.Atoi(m[1])
		message = strings.TrimPrefix(message, m[0])
	}
	return line, message
}

// ahead is how many bytes the scanner may have read beyond the character that it
// complains about: four characters, of up to four bytes.
const ahead = 16

// offender returns the offset of the character that the scanner complains about with
// message, having read so many bytes: with this character the data is long enough for
// the message, and without it not.
func offender(data []byte, read int, message string) int {
	if read > maxAgain {
		return read - 1 // in the right line, most times
	}
	end := read
	for n := read - 1; n > max(read-ahead, 0) && sameError(data[:n], message); n-- {
		end = n
	}
	return end - 1
}

// openingQuote returns the column, on a line, of the quote that nothing closes. message
// says that the data ends too early: cut off after this quote the data gets it, cut off
// before it not.
func openingQuote(data []byte, line int, message string) int {
	begin := offset(data, line)
	end := len(data)
	if i := bytes.IndexByte(data[begin:], '\n'); i >= 0 {
		end = begin + i
	}
	if end-begin > maxQuoted || end > maxAgain {
		return firstColumn(data, line)
	}
	for i := end - 1; i >= begin; i-- {
		if (data[i] == '"' || data[i] == '\'') && !sameError(data[:i], message) && sameError(data[:i+1], message) {
			_, column := place(data[:i])
			return column
		}
	}
	return firstColumn(data, line)
}

// maxQuoted is how long a line may be that is searched for a quote.
const maxQuoted = 1 << 10

// maxAgain is how much is parsed several times.
const maxAgain = 16 << 10

// sameError returns whether the parser gives message for data, at any place.
func sameError(data []byte, message string) bool {
	_, got := firstError(data)
	return got == message
}

// firstError returns what the parser says of data, "" for nothing, and of which line.
func firstError(data []byte) (line int, message string) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var node yaml.Node
		switch err := decoder.Decode(&node); {
		case errors.Is(err, io.EOF):
			return 0, ""
		case err != nil:
			return splitLine(err.Error())
		}
	}
}

// maxExact is the size up to which readUntilError is exact: beyond, reading byte by
// byte takes too long.
const maxExact = 1 << 20

// readUntilError returns how much of data the parser reads before it gives up.
func readUntilError(data []byte) []byte {
	reader := bytes.NewReader(data)
	decoder := yaml.NewDecoder(reader)
	if len(data) <= maxExact {
		decoder = yaml.NewDecoder(byteByByte{reader})
	}
	for {
		var node yaml.Node
		if decoder.Decode(&node) != nil {
			return data[:len(data)-reader.Len()]
		}
	}
}

// byteByByte reads one byte at a time, so that the parser cannot read ahead.
type byteByByte struct{ io.Reader }

func (r byteByByte) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(len(p), 1)]) }

// place returns the line and column of what follows text. Columns count characters.
func place(text []byte) (line, column int) {
	last := text[bytes.LastIndexByte(text, '\n')+1:]
	return bytes.Count(text, []byte("\n")) + 1, utf8.RuneCount(last) + 1
}

// offset returns where a line begins.
func offset(data []byte, line int) int {
	at := 0
	for range line - 1 {
		at += bytes.IndexByte(data[at:], '\n') + 1
	}
	return at
}

// firstColumn returns the column of the first thing on a line.
func firstColumn(data []byte, line int) int {
	text, _, _ := bytes.Cut(data[offset(data, line):], []byte("\n"))
	return len(text) - len(bytes.TrimLeft(text, " \t")) + 1
}
