from tailrace.domains.protection.services.voices.wav import MOST_BYTES, MOST_SECONDS
from tailrace.web.bodies import UploadPaths

VOICES = UploadPaths(
    "/api/protection/voices",
    "/api/protection/recordings",
    "/protection/voices",
    files_bytes=MOST_BYTES,
    limit=f"16 kHz mono PCM of {MOST_SECONDS} s",
)
