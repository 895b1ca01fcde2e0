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

// jsonError returns the syntax error in data. It returns nil if data does not look like JSON.
func jsonError(data []byte) error {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return nil
	}
	var value any
	return json.Unmarshal(data, &value)
}

var lineNumber = regexp.MustCompile(`^line (\d+): `)

// ofParser lists the errors of the YAML parser. All other errors come from its scanner and concern
// a single character.
var ofParser = map[string]bool{
	"did not find expected key":              true,
	"did not find expected node content":     true,
	"did not find expected '-' indicator":    true,
	"did not find expected ',' or ']'":       true,
	"did not find expected ',' or '}'":       true,
	"did not find expected <document start>": true,
}

// yamlPlace returns the position and text of a YAML error.
//
// The scanner's errors have the correct line, except on line 1. The parser's errors have the line
// before the enclosing block, which can be far above the mistake. For the parser's errors,
// yamlPlace returns the position at which the parser stopped reading.
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

func placeIn(data []byte, said int, message string, skipped int) (line, column int, text string) {
	if message == "found unexpected end of stream" {
		return said, openingQuote(data, said, message), message
	}
	read := readUntilError(data)
	switch {
	case ofParser[message]:
		line, _ = place(bytes.TrimRight(read, " \t\r\n"))
		if said+1 < line {
			message += " (in the block that begins on line " + strconv.Itoa(skipped+said+1) + ")"
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

// near returns the rest of data from a line shortly before the error. To find the position of an
// error, the data is parsed many times, which is faster without the earlier lines. If the rest has
// a different error, near returns all of data.
func near(data []byte, said int, message string) (rest []byte, skipped int) {
	for lines := 8; lines < said && !ofParser[message]; lines *= 8 {
		skipped, rest = leastIndented(data, said-lines, said)
		if line, text := firstError(rest); text == message && max(line, 1)+skipped == said {
			return rest, skipped
		}
	}
	return data, 0
}

// leastIndented finds the line with the least indentation in a range of lines. It returns data from
// that line on, and the number of lines before it.
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

// splitLine splits an error into its line number, or 0, and its text.
func splitLine(message string) (line int, rest string) {
	message = strings.TrimPrefix(message, "yaml: ")
	if m := lineNumber.FindStringSubmatch(message); m != nil {
		line, _ = strconv.Atoi(m[1])
		message = strings.TrimPrefix(message, m[0])
	}
	return line, message
}

// ahead is the maximum number of bytes that the scanner reads past the offending character: four
// characters of up to four bytes.
const ahead = 16

// offender returns the offset of the character that causes the scanner's error. It searches for the
// shortest beginning of the data that still causes the error; this beginning ends with the
// character.
func offender(data []byte, read int, message string) int {
	if read > maxAgain {
		return read - 1 // a good guess, because the line is usually correct
	}
	end := read
	for n := read - 1; n > max(read-ahead, 0) && sameError(data[:n], message); n-- {
		end = n
	}
	return end - 1
}

// openingQuote returns the column of the quote in the line that is never closed. It searches for
// the shortest beginning of the line that still causes the error; this beginning ends with the
// quote.
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

// maxQuoted limits the length of the lines that openingQuote searches.
const maxQuoted = 1 << 10

// maxAgain limits the length of data that is parsed repeatedly.
const maxAgain = 16 << 10

func sameError(data []byte, message string) bool {
	_, got := firstError(data)
	return got == message
}

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

// maxExact limits the length of data that readUntilError reads byte by byte, which is exact but
// slow.
const maxExact = 1 << 20

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

// byteByByte keeps the parser from reading ahead.
type byteByByte struct{ io.Reader }

func (r byteByByte) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(len(p), 1)]) }

// place returns the line and column at the end of text. Columns count characters.
func place(text []byte) (line, column int) {
	last := text[bytes.LastIndexByte(text, '\n')+1:]
	return bytes.Count(text, []byte("\n")) + 1, utf8.RuneCount(last) + 1
}

func offset(data []byte, line int) int {
	at := 0
	for range line - 1 {
		at += bytes.IndexByte(data[at:], '\n') + 1
	}
	return at
}

func firstColumn(data []byte, line int) int {
	text, _, _ := bytes.Cut(data[offset(data, line):], []byte("\n"))
	return len(text) - len(bytes.TrimLeft(text, " \t")) + 1
}
