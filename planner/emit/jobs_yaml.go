package emit

import (
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/quote"
)

// mapping is a mapping of YAML whose keys keep their order.
type mapping []entry

type entry struct {
	key   string
	value any // a scalar, a list, a mapping, or what JSON has
}

// when are entries under a condition.
func (keys *mapping) when(condition bool, entries ...entry) {
	if condition {
		*keys = append(*keys, entries...)
	}
}

// MarshalYAML implements yaml.Marshaler. Text that steers a terminal is in quotes
// and escaped.
func (keys mapping) MarshalYAML() (any, error) {
	node := &yaml.Node{Kind: yaml.MappingNode}
	for _, entry := range keys {
		var value yaml.Node
		if err := value.Encode(entry.value); err != nil {
			return nil, err
		}
		for _, text := range append(value.Content, &value) {
			if strings.ContainsFunc(text.Value, quote.Steers) {
				text.Style = yaml.DoubleQuotedStyle
			}
		}
		node.Content = append(node.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: entry.key}, &value)
	}
	return node, nil
}

// print writes the file below a comment.
func (keys mapping) print(to io.Writer, comment string) error {
	text := &strings.Builder{}
	encoder := yaml.NewEncoder(text)
	const indent = 2
	encoder.SetIndent(indent)
	if err := encoder.Encode(keys); err != nil {
		return err
	}
	_, err := fmt.Fprintf(to, "# %s\n%s", comment, quote.JSON(text.String()))
	return err
}

// inline is DeepSpeed's configuration as a mapping, which the programs take in the
// place of a file's name.
func inline(plan *devicemap.Plan) (*yaml.Node, error) {
	return yamlOf(func(to io.Writer) error { return zeroFile(to, &Input{Plan: plan}) })
}

// yamlOf is a JSON text as a mapping of YAML.
func yamlOf(write func(to io.Writer) error) (*yaml.Node, error) {
	text := &strings.Builder{}
	if err := write(text); err != nil {
		return nil, err
	}
	var document yaml.Node // JSON is YAML
	if err := yaml.Unmarshal([]byte(text.String()), &document); err != nil {
		return nil, err
	}
	config := document.Content[0]
	blocks(config)
	return config, nil
}

// blocks gives a mapping a line for each key.
func blocks(node *yaml.Node) {
	node.Style = 0
	for _, inner := range node.Content {
		blocks(inner)
	}
}
