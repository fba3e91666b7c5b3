package phases

import (
	"cmp"
	"fmt"
	"math"
)

// tokenSide is the pixels of a token's side: eight a latent, two latents.
const tokenSide = 16

// between is the frames of a latent after the first.
const between = 4

// sized returns the workload as a pipeline of a class changes it, and notes on the changes.
func (work Workload) sized(class string) (Workload, rule, []string, error) {
	work, own, err := work.filled(class)
	if err != nil {
		return work, own, nil, err
	}
	notes := work.resize(own)
	return work, own, notes, work.fits(own)
}

// resize changes sizes as the pipeline does, and notes each change.
func (work *Workload) resize(own rule) []string {
	var notes []string
	change := func(name string, size *int64, other int64) {
		if *size != other {
			notes = append(notes, fmt.Sprintf("%s %d is planned as %d, which is what the pipeline makes of it", name, *size, other))
			*size = other
		}
	}
	if own.area > 0 { // pipeline_flux_kontext.py: as many pixels in all, in the same proportion
		ratio := float64(work.Width) / float64(work.Height)
		width, height := math.RoundToEven(math.Sqrt(float64(own.area)*ratio)), math.RoundToEven(math.Sqrt(float64(own.area)/ratio))
		change("width", &work.Width, max(1, int64(width)/tokenSide)*tokenSide)
		change("height", &work.Height, max(1, int64(height)/tokenSide)*tokenSide)
	}
	if own.cut {
		change("height", &work.Height, max(1, work.Height/tokenSide)*tokenSide)
		change("width", &work.Width, max(1, work.Width/tokenSide)*tokenSide)
	}
	switch {
	case own.frames == 1:
	case own.nearest: // pipeline_wan.py: num_frames // 4 * 4 + 1
		if work.Frames%between != 1 {
			change("frames", &work.Frames, work.Frames/between*between+1)
		}
	default: // what prepare_latents has latents for
		change("frames", &work.Frames, (work.Frames-1)/between*between+1)
	}
	return notes
}

// fits refuses sizes that the pipeline does not take.
func (work Workload) fits(own rule) error {
	side := cmp.Or(own.side, tokenSide)
	for _, size := range []struct {
		name  string
		count int64
	}{{"height", work.Height}, {"width", work.Width}} {
		if size.count%side != 0 {
			return fmt.Errorf("%s %d is no multiple of %d, which the pipeline wants: %d and %d are", size.name, size.count, side, max(1, size.count/side)*side, (size.count/side+1)*side)
		}
	}
	switch {
	case own.frames == 1 && work.Frames != 1:
		return fmt.Errorf("frames %d: the pipeline makes pictures", work.Frames)
	case work.CFGDegree > 2:
		return refusedf("cfg degree %d: there are a prompt and its negative, so 1 or 2", work.CFGDegree)
	case work.CFGDegree == 2 && !own.guided:
		return refusedf("cfg degree 2: the pipeline has no negative prompt (its guidance is an input of the transformer); use 1")
	}
	return nil
}
