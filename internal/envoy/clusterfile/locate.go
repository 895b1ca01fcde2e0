package clusterfile

import (
	"errors"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/understudy-lb/understudy/internal/envoy/messages"
)

// positionOf returns the position of a node. The parser gives no position for some nodes, such as
// empty ones. positionOf then returns line 1 and column 1.
func (d *decoder) positionOf(node *yaml.Node) messages.Position {
	return messages.Position{File: d.path, Line: max(node.Line, 1), Column: max(node.Column, 1)}
}

// locate returns the position of the field with the given path, such as
// "endpoints[2].lb_endpoints[0].load_balancing_weight". For a scalar, this is the position of the
// value, and otherwise the position of the key. If the field does not exist, locate returns the
// position of its nearest existing ancestor.
func (d *decoder) locate(path string) messages.Position {
	node, found := d.root, d.root
	for step := range strings.SplitSeq(path, ".") {
		name, index, indexed := strings.Cut(strings.TrimSuffix(step, "]"), "[")
		key, value := entry(node, name)
		if value == nil {
			break
		}
		node, found = value, key
		if value.Kind == yaml.ScalarNode {
			found = value
		}
		if !indexed {
			continue
		}
		i, err := strconv.Atoi(index)
		if err != nil || node.Kind != yaml.SequenceNode || i >= len(node.Content) {
			break
		}
		node, found = node.Content[i], node.Content[i]
	}
	return d.positionOf(found)
}

// entry returns the key and the value of the field with the given name in snake case. In the file,
// the key may be written in snake case or in camel case.
func entry(node *yaml.Node, name string) (key, value *yaml.Node) {
	if node.Kind != yaml.MappingNode {
		return nil, nil
	}
	plain := strings.ReplaceAll(name, "_", "")
	for i := 0; i+1 < len(node.Content); i += 2 {
		if strings.EqualFold(strings.ReplaceAll(node.Content[i].Value, "_", ""), plain) {
			return node.Content[i], node.Content[i+1]
		}
	}
	return nil, nil
}

// located adds positions to the problems of an *messages.Invalid, whose paths are relative to the
// given one.
func (d *decoder) located(path string, err error) error {
	invalid, ok := errors.AsType[*messages.Invalid](err)
	if !ok {
		return err
	}
	for i, p := range invalid.Problems {
		invalid.Problems[i].At = d.locate(p.Within(path).Path)
	}
	return invalid.Err()
}
