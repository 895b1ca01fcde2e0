package file

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
	read := readUntilError(data)
	switch {
	case ofParser[message]:
		line, _ = place(bytes.TrimRight(read, " \t\r\n"))
		if said+1 < line {
			message += " (in what begins on line " + strconv.Itoa(said+1) + ")"
		}
		return line, firstColumn(data, line), message
	case strings.HasPrefix(message, "unknown anchor '"):
		name := strings.Split(message, "'")[1]
		line, column = place(read[:max(bytes.LastIndex(read, []byte("*"+name)), 0)])
		return line, column, message
	}
	line, column = place(data[:offender(data, len(read), message)])
	switch {
	case said == 0 || said == line:
		return line, column, message
	case message == "found unexpected end of stream":
		return said, openingQuote(data, said, message), message
	}
	return said, firstColumn(data, said), message
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
	if len(data) > maxExact {
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
	if end-begin > maxQuoted {
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

// sameError returns whether the parser gives message for data, at any place.
func sameError(data []byte, message string) bool {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var node yaml.Node
		switch err := decoder.Decode(&node); {
		case errors.Is(err, io.EOF):
			return false
		case err != nil:
			_, got := splitLine(err.Error())
			return got == message
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
