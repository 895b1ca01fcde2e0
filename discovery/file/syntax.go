package file

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

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
	line, column, text := yamlPlace(data, strings.TrimPrefix(err.Error(), "yaml: "))
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

// lineNumber is how the YAML parser says where, if it does.
var lineNumber = regexp.MustCompile(`^line (\d+): `)

// yamlPlace returns the place of the parser's message, and the message without it.
//
// What the scanner finds comes with its line. What the parser above it finds comes
// with the number of lines before the block or list that it is in, which can be far
// up; the place is then where the parser stopped to read.
func yamlPlace(data []byte, message string) (line, column int, text string) {
	said := 0
	if m := lineNumber.FindStringSubmatch(message); m != nil {
		said, _ = strconv.Atoi(m[1])
		message = strings.TrimPrefix(message, m[0])
	}
	inParser := strings.HasPrefix(message, "did not find expected")
	if line = said; said == 0 || inParser {
		line, _ = place(bytes.TrimRight(readUntilError(data), " \t\r\n"))
	}
	if inParser && said+1 < line {
		message += " (in what begins on line " + strconv.Itoa(said+1) + ")"
	}
	return line, firstColumn(data, line), message
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

// place returns the line and column of what follows text.
func place(text []byte) (line, column int) {
	return bytes.Count(text, []byte("\n")) + 1, len(text) - bytes.LastIndexByte(text, '\n')
}

// firstColumn returns the column of the first thing on a line.
func firstColumn(data []byte, line int) int {
	for range line - 1 {
		_, data, _ = bytes.Cut(data, []byte("\n"))
	}
	data, _, _ = bytes.Cut(data, []byte("\n"))
	return len(data) - len(bytes.TrimLeft(data, " \t")) + 1
}
