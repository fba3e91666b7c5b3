package ask

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

// ConfigName is the name of a file of defaults.
const ConfigName = "devmap.toml"

const (
	configVariable = "DEVMAP_CONFIG" // a config file that replaces the others
	maxDefaults    = 1 << 20         // bytes of a config file
)

// ConfigFiles lists the files that set defaults, highest priority first. A missing file is an error
// only if DEVMAP_CONFIG names it.
func ConfigFiles() []string {
	if named := os.Getenv(configVariable); named != "" {
		return []string{named}
	}
	files := []string{ConfigName}
	folder := os.Getenv("XDG_CONFIG_HOME")
	if home, err := os.UserHomeDir(); folder == "" && err == nil && filepath.IsAbs(home) {
		folder = filepath.Join(home, ".config")
	}
	if roaming := os.Getenv("AppData"); runtime.GOOS == "windows" && roaming != "" {
		folder = roaming
	}
	if filepath.IsAbs(folder) { // required by the XDG specification
		files = append(files, filepath.Join(folder, "devmap", ConfigName))
	}
	return files
}

// outside is a default from the environment or a config file.
type outside struct {
	flag, place string   // for example DEVMAP_GPU or devmap.toml:3
	values      []string // a list has several
}

// configDefaults returns the defaults in a config file.
func configDefaults(path string) ([]outside, error) {
	data, err := readConfigFile(path)
	if errors.Is(err, fs.ErrNotExist) && path != os.Getenv(configVariable) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("config file %s: %w", path, err)
	}
	document := map[string]any{}
	if err := toml.Unmarshal(data, &document); err != nil {
		if fault := (*toml.DecodeError)(nil); errors.As(err, &fault) {
			return nil, syntaxError(path, data, fault)
		}
		return nil, out.Usagef("%s: not valid TOML: %s", path, strings.TrimPrefix(err.Error(), "toml: "))
	}
	lines := keyLines(data)
	var defaults []outside
	for key, value := range document {
		place := fmt.Sprintf("%s:%d", path, lines[key])
		name := strings.ReplaceAll(key, "_", "-")
		if !outsideSets(name) {
			return nil, out.Usagef("%s: unknown key %q%s", place, key, nearOutside(name))
		}
		values, err := outsideValues(value)
		if err != nil {
			return nil, out.Usagef("%s: %s: %w", place, key, err)
		}
		defaults = append(defaults, outside{name, place, values})
	}
	slices.SortFunc(defaults, func(one, other outside) int {
		return lines[underscored(one.flag, lines)] - lines[underscored(other.flag, lines)]
	})
	return defaults, nil
}

// syntaxError names the line of a syntax error, and its key.
func syntaxError(path string, data []byte, fault *toml.DecodeError) error {
	row, _ := fault.Position()
	place, hint := fmt.Sprintf("%s:%d", path, row), ""
	if lines := strings.Split(string(data), "\n"); row >= 1 && row <= len(lines) {
		if key, value, found := strings.Cut(lines[row-1], "="); found {
			place += ": " + strings.TrimSpace(key)
			if first, _ := utf8.DecodeRuneInString(strings.TrimSpace(value)); unicode.IsLetter(first) {
				hint = " (text needs quotes)"
			}
		}
	}
	return out.Usagef("%s: not valid TOML: %s%s", place, strings.TrimPrefix(fault.Error(), "toml: "), hint)
}

// underscored returns a flag's name as it is in the file.
func underscored(name string, lines map[string]int) string {
	if _, found := lines[name]; found {
		return name
	}
	return strings.ReplaceAll(name, "-", "_")
}

func readConfigFile(path string) ([]byte, error) {
	if path == os.DevNull {
		return nil, nil
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("no such file: %w", fs.ErrNotExist)
	case err != nil:
		return nil, reason(err)
	case !info.Mode().IsRegular():
		return nil, errors.New("not a file")
	case info.Size() > maxDefaults:
		return nil, fmt.Errorf("%d bytes, at most %d", info.Size(), maxDefaults)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, reason(err)
	}
	defer file.Close() //nolint:errcheck // opened for reading
	return io.ReadAll(io.LimitReader(file, maxDefaults))
}

// reason returns the error of a file operation without the operation and the name.
func reason(err error) error {
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return path.Err
	}
	return err
}

// keyLines returns the line of each key of a valid TOML file.
func keyLines(data []byte) map[string]int {
	lines := map[string]int{}
	var parser unstable.Parser
	parser.Reset(data)
	for parser.NextExpression() {
		keys := parser.Expression().Key()
		if keys.Next() {
			if key := string(keys.Node().Data); lines[key] == 0 {
				lines[key] = parser.Shape(keys.Node().Raw).Start.Line
			}
		}
	}
	return lines
}

// outsideValues returns a value as words; an array gives several.
func outsideValues(value any) ([]string, error) {
	switch value := value.(type) {
	case string:
		return []string{value}, nil
	case bool:
		return []string{strconv.FormatBool(value)}, nil
	case int64:
		return []string{strconv.FormatInt(value, 10)}, nil
	case float64:
		return []string{strconv.FormatFloat(value, 'g', -1, 64)}, nil
	case []any:
		var words []string
		for _, item := range value {
			parts, err := outsideValues(item)
			if err != nil {
				return nil, err
			}
			words = append(words, strings.Join(parts, ","))
		}
		return words, nil
	}
	return nil, errors.New("want a string, a number, true or false, or an array of them")
}

// nearOutside returns a hint with the name that the user probably meant.
func nearOutside(name string) string {
	if ours := elsewhere(name); ours != "" && outsideSets(ours) {
		return ": did you mean " + ours + "?"
	}
	if near := Nearest(name, outsideNames()); near != "" {
		return ": did you mean " + near + "?"
	}
	return " (keys are the flags of devmap plan: devmap help environment)"
}
