package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// downloads is the address of a release's archives: on the project's page, by tag.
const downloads = "https://github.com/devmap-dev/devmap/releases/download/v"

// formula writes the Homebrew formula of a release into its folder, for the folder's archives
// (docs.brew.sh/Formula-Cookbook). It writes none if Homebrew can use no archive.
func (packer *packer) formula() error {
	var text strings.Builder
	for _, system := range [][2]string{{"darwin", "macos"}, {"linux", "linux"}} {
		var blocks strings.Builder
		for _, processor := range [][2]string{{"amd64", "intel"}, {"arm64", "arm"}} {
			archive := packer.stem(&platform{system: system[0], processor: processor[0]}) + ".tar.gz"
			data, err := os.ReadFile(filepath.Join(packer.archives, archive))
			if os.IsNotExist(err) {
				continue
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(&blocks, "    on_%s do\n      url %q\n      sha256 \"%x\"\n    end\n", processor[1], downloads+packer.made.version+"/"+archive, sha256.Sum256(data))
		}
		if blocks.Len() > 0 {
			fmt.Fprintf(&text, "\n  on_%s do\n%s  end\n", system[1], &blocks)
		}
	}
	if text.Len() == 0 {
		return nil
	}
	name := filepath.Join(packer.archives, "devmap.rb")
	if err := os.WriteFile(name, fmt.Appendf(nil, formulaText, packer.made.version, text.String()), 0o644); err != nil {
		return err
	}
	return say(name)
}

// formulaText is the formula without its archives.
const formulaText = `class Devmap < Formula
  desc "Predict GPU memory and find the split of a model with the lowest peak"
  homepage "https://github.com/devmap-dev/devmap"
  version %q
  license "Apache-2.0"
%s
  def install
    bin.install "devmap"
    bash_completion.install "completion/devmap.bash" => "devmap"
    fish_completion.install "completion/devmap.fish"
    zsh_completion.install "completion/_devmap"
    man1.install "man/man1/devmap.1"
  end

  test do
    system bin/"devmap", "plan", "gpt2", "--gpus", "2", "-o", "plan.json"
    assert_path_exists testpath/"plan.json"
  end
end
`
