package main

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// sbom writes the software bill of materials of a program as a CycloneDX file: the modules and the
// Go release in the program's build information. It has no random serial number, so equal programs
// have equal files.
func (packer *packer) sbom(platform *platform, program string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	name := filepath.Join(packer.archives, packer.stem(platform)+".cdx.json")
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	encoder := cyclonedx.NewBOMEncoder(file, cyclonedx.BOMFileFormatJSON).SetPretty(true)
	err = encoder.Encode(packer.bill(info))
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return say(name)
}

// bill returns the document of one program.
func (packer *packer) bill(info *debug.BuildInfo) *cyclonedx.BOM {
	main := component(cyclonedx.ComponentTypeApplication, info.Main.Path, packer.made.version)
	main.Licenses = &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}}
	parts := []cyclonedx.Component{component(cyclonedx.ComponentTypeLibrary, "std", info.GoVersion)}
	needs := []string{parts[0].BOMRef}
	for _, module := range info.Deps {
		part := component(cyclonedx.ComponentTypeLibrary, module.Path, module.Version)
		parts, needs = append(parts, part), append(needs, part.BOMRef)
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Timestamp: packer.made.when.Format(time.RFC3339), Component: &main}
	bom.Components = &parts
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: main.BOMRef, Dependencies: &needs}}
	return bom
}

// component returns a Go module, with its package URL (purl-spec, type golang).
func component(kind cyclonedx.ComponentType, path, version string) cyclonedx.Component {
	url := "pkg:golang/" + path + "@" + version
	return cyclonedx.Component{BOMRef: url, Type: kind, Name: path, Version: version, PackageURL: url}
}
